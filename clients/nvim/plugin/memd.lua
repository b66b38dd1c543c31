-- :Memd recall|remember|profile|status. Loads nothing else until it is called.
if vim.g.loaded_memd then
  return
end
vim.g.loaded_memd = true

vim.api.nvim_create_user_command("Memd", function(call)
  require("memd").command(call)
end, {
  nargs = "*",
  range = true,
  desc = "Ask memd, or tell it",
  complete = function(lead, line)
    return require("memd").complete(lead, line)
  end,
})
