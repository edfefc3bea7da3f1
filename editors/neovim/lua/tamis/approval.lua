--- Asking before a call runs: `tool/requestApproval` through `vim.ui.select`. Leaving the menu is no refusal.
local M = {}

local function details(request)
  local text = vim.json.encode({ tool = request.tool, version = request.version, risk = request.risk, args = request.args, permissions = request.permissions })
  vim.notify(text, vim.log.levels.INFO)
end

--- The answer to a question; only in a coroutine, as the handlers of requests are.
function M.handler(_, request)
  local co = assert(coroutine.running())
  local items = vim.list_slice(request.options)
  table.insert(items, { label = 'Details', details = true })
  local function ask()
    vim.ui.select(items, {
      kind = 'tamis_approval',
      prompt = ('Run %s? Risk: %s. %s'):format(request.tool, request.risk, request.argsPreview),
      format_item = function(option)
        return option.label
      end,
    }, function(option)
      if option and option.details then
        details(request)
        return vim.schedule(ask)
      end
      local reply = option and { outcome = 'selected', optionId = option.optionId } or { outcome = 'cancelled' }
      -- Not before the yield, also where a menu answers at once.
      vim.schedule(function()
        coroutine.resume(co, reply)
      end)
    end)
  end
  ask()
  return coroutine.yield()
end

return M
