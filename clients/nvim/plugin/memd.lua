-- :Memd recall|remember|profile|status. It loads the other modules at the first call.
if vim.g.loaded_memd then
  return
end
vim.g.loaded_memd = true

vim.api.nvim_create_user_command("Memd", function(call)
  require("memd").command(call)
end, {
  nargs = "*",
  range = true,
  desc = "Ask memd, or save a memory",
  complete = function(lead, line)
    return require("memd").complete(lead, line)
  end,
})
