-- memd in Neovim: `:Memd recall words`, `:'<,'>Memd remember`, `:Memd profile`, `:Memd status`.
local M = {}
local uv = vim.uv or vim.loop

M.options = {
  program = "memd", -- for `remember` while the daemon is down: it puts the text into the spool
  deadline_ms = 2000,
  limit = nil, -- of the results; by default memd's own
  recall = {}, -- other fields of the request `recall`, such as { types = { "decision" } }
}

function M.setup(options)
  M.options = vim.tbl_extend("force", M.options, options or {})
end

-- Returns the folders of this environment, by the rules of protocol/places.py.
function M.places()
  local function of(variable, default)
    local value = vim.env[variable]
    return (value and value ~= "" and value or (vim.env.HOME or "") .. default) .. "/memd"
  end
  local base = vim.env.MEMD_HOME
  if base and base ~= "" then
    base = vim.fn.fnamemodify(base, ":p"):gsub("/$", "")
    return { state = base .. "/state", config = base .. "/config", run = base .. "/run" }
  end
  local runtime = vim.env.XDG_RUNTIME_DIR
  return {
    state = of("XDG_STATE_HOME", "/.local/state"),
    config = of("XDG_CONFIG_HOME", "/.config"),
    run = runtime and runtime ~= "" and runtime .. "/memd" or nil,
  }
end

-- Returns the path that the file `socket` names if it exists, else the usual one; or nil and a problem.
function M.socket()
  local places = M.places()
  local path = places.run and places.run .. "/memd.sock"
  local file = io.open(places.state .. "/socket")
  if file then
    local named = vim.trim(file:read("*a") or "")
    file:close()
    if named:sub(1, 1) == "/" and uv.fs_stat(named) then
      path = named
    end
  end
  local stat = path and uv.fs_stat(path)
  if not stat then
    return nil, { code = "daemon_down", message = "the daemon is not running", hint = "start it: `memd up`" }
  end
  if stat.uid ~= uv.getuid() then
    local message = path .. " belongs to uid " .. stat.uid
    return nil, { code = "refused", message = message, hint = "a client connects to its own user's daemon" }
  end
  return path
end

-- Returns the variable or file that disables memd, nil while it is enabled.
function M.disabled()
  local value = vim.trim((vim.env.MEMD_DISABLED or ""):lower())
  if not vim.tbl_contains({ "", "0", "false", "no", "off" }, value) then
    return "MEMD_DISABLED=" .. vim.env.MEMD_DISABLED
  end
  local file = M.places().config .. "/disabled"
  return uv.fs_stat(file) and file or nil
end

-- Sends any request of docs/PROTOCOL.md; `done(problem, data)` is called once, later.
function M.ask(request, fields, done)
  local why = M.disabled()
  if why then
    return done({ code = "disabled", message = "memd is disabled by " .. why, hint = "" })
  end
  local path, problem = M.socket()
  if not path then
    return done(problem)
  end
  local pass = vim.env.MEMD_PASS
  local given = pass and { pass = pass ~= "" and pass or "empty" } or {}
  local body = vim.fn.json_encode(vim.tbl_extend("force", given, fields, { request = request, rid = 1 }))
  require("memd.zmtp").exchange(path, body, M.options.deadline_ms, done)
end

local function notify(problem)
  local hint = problem.hint ~= "" and "; " .. problem.hint or ""
  local level = problem.code == "disabled" and vim.log.levels.INFO or vim.log.levels.WARN
  vim.notify("memd: " .. problem.message .. hint, level)
end

-- Shows lines in a floating window, which q or Esc closes.
function M.float(title, lines)
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = "wipe"
  vim.bo[buffer].filetype = "markdown"
  local width = math.max(20, math.min(90, vim.o.columns - 4))
  local height = 0
  for _, line in ipairs(lines) do
    height = height + math.max(1, math.ceil(vim.fn.strdisplaywidth(line) / width))
  end
  local shape = {
    relative = "editor",
    style = "minimal",
    border = "rounded",
    width = width,
    height = math.max(1, math.min(height, vim.o.lines - 4)),
  }
  shape.row = math.floor((vim.o.lines - shape.height) / 2) - 1
  shape.col = math.floor((vim.o.columns - width) / 2)
  if vim.fn.has("nvim-0.9") == 1 then
    shape.title = " " .. title .. " "
  end
  local window = vim.api.nvim_open_win(buffer, true, shape)
  vim.wo[window].wrap = true
  vim.wo[window].linebreak = true
  for _, key in ipairs({ "q", "<Esc>" }) do
    vim.keymap.set("n", key, "<Cmd>close<CR>", { buffer = buffer, nowait = true, silent = true })
  end
  return window, buffer
end

local function one_line(text)
  return vim.trim((text:gsub("%s+", " ")))
end

function M.recall_lines(data)
  local lines = {}
  for number, hit in ipairs(data.hits) do
    local record = hit.record
    table.insert(lines, ("%d. %s"):format(number, one_line(record.description or record.content)))
    table.insert(lines, ("   %s · %s · score %.2f"):format(record.id:sub(1, 8), record.type, hit.score))
  end
  for _, turn in ipairs(data.turns or {}) do
    table.insert(lines, ("- “%s”"):format(one_line(turn.quote)))
    table.insert(lines, ("   verbatim from a session · %s · score %.2f"):format(turn.document, turn.score))
  end
  if #lines == 0 then
    table.insert(lines, "No relevant memory found: " .. (data.reason ~= "" and data.reason or "no match"))
  end
  for _, principle in ipairs(data.principles or {}) do
    local record = principle.record
    table.insert(lines, ("Principle: %s · %s"):format(one_line(record.description or record.content), record.id:sub(1, 8)))
  end
  return lines
end

function M.recall(query)
  if query == "" then
    return vim.notify("memd: type words to search for: `:Memd recall words`", vim.log.levels.WARN)
  end
  local asked = { query = query, cwd = vim.fn.getcwd(), limit = M.options.limit }
  local fields = vim.tbl_extend("force", asked, M.options.recall)
  M.ask("recall", fields, function(problem, data)
    if problem then
      return notify(problem)
    end
    M.float("memd: " .. query:sub(1, 60), M.recall_lines(data))
  end)
end

-- Saves `text` as the user's statement; while the daemon is down, `memd remember` puts it into the spool.
function M.remember(text)
  if vim.trim(text) == "" then
    return vim.notify("memd: no text to remember", vim.log.levels.WARN)
  end
  local cwd = vim.fn.getcwd()
  local fields = {
    text = text,
    turn = ("%d-%d"):format(uv.os_getpid(), uv.hrtime()),
    at = os.date("!%Y-%m-%dT%H:%M:%SZ"),
    origin = { host = "nvim", session = cwd, cwd = cwd },
  }
  M.ask("remember", fields, function(problem, data)
    if not problem then
      return vim.notify("memd: remembered " .. data.record.id:sub(1, 8))
    end
    if problem.code ~= "daemon_down" and problem.code ~= "deadline_exceeded" then
      return notify(problem)
    end
    M.spool(text, cwd, problem)
  end)
end

function M.spool(text, cwd, problem)
  if vim.fn.executable(M.options.program) ~= 1 then
    return notify(problem)
  end
  local job = vim.fn.jobstart({ M.options.program, "remember", "-", "--cwd", cwd }, {
    on_exit = function(_, code)
      if code == 0 then
        vim.notify("memd: the daemon is not running; the text is spooled until it starts")
      else
        notify(problem)
      end
    end,
  })
  vim.fn.chansend(job, text)
  vim.fn.chanclose(job, "stdin")
end

function M.profile()
  M.ask("profile", { cwd = vim.fn.getcwd() }, function(problem, data)
    if problem then
      return notify(problem)
    end
    M.float("memd: profile", vim.split(data.text ~= "" and data.text or "The profile is empty.", "\n"))
  end)
end

function M.status()
  M.ask("status", {}, function(problem, data)
    if problem then
      return notify(problem)
    end
    local count = 0
    for _, number in pairs(data.records) do
      count = count + number
    end
    vim.notify(("memd %s runs: %d records, %d to distil"):format(data.version, count, data.pending))
  end)
end

-- Returns the selected text, or the lines of the range.
local function selected(call)
  local from, to = vim.fn.getpos("'<"), vim.fn.getpos("'>")
  if from[2] == call.line1 and to[2] == call.line2 and vim.fn.visualmode() == "v" then
    local lines = vim.fn.getline(call.line1, call.line2)
    lines[#lines] = vim.fn.strcharpart(lines[#lines], 0, vim.fn.charcol("'>"))
    lines[1] = vim.fn.strcharpart(lines[1], vim.fn.charcol("'<") - 1)
    return table.concat(lines, "\n")
  end
  return table.concat(vim.fn.getline(call.line1, call.line2), "\n")
end

local COMMANDS = {
  recall = function(words, call)
    M.recall(words ~= "" and words or call.range > 0 and selected(call) or vim.fn.expand("<cword>"))
  end,
  remember = function(words, call)
    M.remember(words ~= "" and words or call.range > 0 and selected(call) or "")
  end,
  profile = function()
    M.profile()
  end,
  status = function()
    M.status()
  end,
}

function M.command(call)
  local name, words = call.args:match("^(%S*)%s*(.*)$")
  local run = COMMANDS[name]
  if not run then
    return vim.notify("memd: `:Memd recall|remember|profile|status`", vim.log.levels.WARN)
  end
  run(words, call)
end

function M.complete(lead, line)
  if line:match("^%s*%S*Memd%s+%S*$") then
    return vim.tbl_filter(function(name)
      return name:sub(1, #lead) == lead
    end, { "profile", "recall", "remember", "status" })
  end
  return {}
end

return M
