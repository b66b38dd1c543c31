-- :checkhealth memd
local M = {}

function M.check()
  local health = vim.health or {}
  local start = health.start or health.report_start or require("health").report_start
  local ok = health.ok or health.report_ok or require("health").report_ok
  local warn = health.warn or health.report_warn or require("health").report_warn
  local failed = health.error or health.report_error or require("health").report_error
  local memd = require("memd")

  start("memd")
  if vim.fn.executable(memd.options.program) == 1 then
    ok("`" .. memd.options.program .. "` is in your PATH")
  else
    warn("`" .. memd.options.program .. "` is not in your PATH: texts can't be spooled while the daemon is down")
  end
  local answer
  memd.ask("status", {}, function(problem, data)
    answer = { problem = problem, data = data }
  end)
  vim.wait(memd.options.deadline_ms + 500, function()
    return answer ~= nil
  end, 10)
  if answer and answer.data then
    ok(("memd %s answers (pid %d, %d captures to distil)"):format(answer.data.version, answer.data.pid, answer.data.pending))
  else
    local problem = answer and answer.problem or { message = "no answer", hint = "" }
    failed("the daemon does not answer: " .. problem.message .. " " .. problem.hint)
  end
end

return M
