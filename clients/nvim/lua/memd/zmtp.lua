-- One request to the daemon, over its Unix socket: ZMTP 3.0, NULL mechanism, a JSON body.
-- It sends no request before the peer's READY; a call ends by its deadline in any case; the editor never waits.
local M = {}
local uv = vim.uv or vim.loop

local MORE, LONG, COMMAND = 1, 2, 4
local START = "start it: `memd up`"
local GREETING = "\255" .. ("\0"):rep(8) .. "\127\3\0NULL" .. ("\0"):rep(16) .. ("\0"):rep(32)
local READY = "\5READY\11Socket-Type\0\0\0\6DEALER\8Identity\0\0\0\0"

local function frame(body, flags)
  if #body < 256 then
    return string.char(flags, #body) .. body
  end
  local size, bytes = #body, {}
  for place = 8, 1, -1 do
    bytes[place] = string.char(size % 256)
    size = math.floor(size / 256)
  end
  return string.char(flags + LONG) .. table.concat(bytes) .. body
end

local function has(flags, bit)
  return math.floor(flags / bit) % 2 == 1
end

-- Returns the first frame of `buffer` (flags, body, rest), nil while it is incomplete.
local function next_frame(buffer)
  if #buffer < 2 then
    return nil
  end
  local flags, size, start = buffer:byte(1), buffer:byte(2), 2
  if has(flags, LONG) then
    if #buffer < 9 then
      return nil
    end
    size, start = 0, 9
    for place = 2, 9 do
      size = size * 256 + buffer:byte(place)
    end
  end
  if #buffer < start + size then
    return nil
  end
  return flags, buffer:sub(start + 1, start + size), buffer:sub(start + size + 1)
end

-- Sends `body` (a table) to the socket `path`; `done(problem, reply)` is called once, in the main loop.
-- A problem is { code, message, hint }.
function M.exchange(path, body, deadline_ms, done)
  local pipe, timer = uv.new_pipe(false), uv.new_timer()
  local ended, greeted, buffer, size, needs = false, false, {}, 0, 64

  local function finish(problem, reply)
    if ended then
      return
    end
    ended = true
    timer:stop()
    timer:close()
    pipe:close()
    vim.schedule(function()
      done(problem, reply)
    end)
  end

  local function fail(code, message, hint)
    finish({ code = code, message = message, hint = hint or "" })
  end

  local function take(flags, content)
    if has(flags, COMMAND) then
      if content:sub(1, 6) == "\5READY" then
        pipe:write(frame(body, 0))
      elseif content:sub(1, 5) == "\4PING" then
        pipe:write(frame("\4PONG" .. content:sub(8), COMMAND))
      end
    elseif not has(flags, MORE) then
      vim.schedule(function()
        local well, reply = pcall(vim.fn.json_decode, content)
        if not well then
          fail("unavailable", "the daemon's reply does not decode", "restart it: `memd down; memd up`")
        elseif reply.ok then
          finish(nil, reply.data)
        else
          finish({ code = reply.error.code, message = reply.error.message, hint = reply.error.hint or "" })
        end
      end)
    end
  end

  local function receive(piece)
    buffer[#buffer + 1], size = piece, size + #piece
    if size < needs then
      return
    end
    local whole = table.concat(buffer)
    if not greeted then
      if whole:byte(1) ~= 255 or whole:byte(11) < 3 or whole:sub(13, 16) ~= "NULL" then
        return fail("unavailable", "what listens on " .. path .. " does not speak ZMTP 3")
      end
      greeted, whole, needs = true, whole:sub(65), 0
    end
    local flags, content, rest = next_frame(whole)
    while flags and not ended do
      take(flags, content)
      whole = rest
      flags, content, rest = next_frame(whole)
    end
    buffer, size = { whole }, #whole
  end

  timer:start(deadline_ms, 0, function()
    fail("deadline_exceeded", ("no answer within %d ms"):format(deadline_ms), "see `memd status`")
  end)
  pipe:connect(path, function(refused)
    if refused then
      return fail("daemon_down", "the daemon is not running", START)
    end
    pipe:write(GREETING .. frame(READY, COMMAND))
    pipe:read_start(function(broken, piece)
      if broken or not piece then
        return fail("daemon_down", "the daemon closed the connection", START)
      end
      if not ended then
        receive(piece)
      end
    end)
  end)
end

return M
