--- What `tool/requestApproval` asks, through `vim.ui.select`: whether a call may run, or what the MCP server of a tool wants to know.
--- Leaving the menu is no refusal. Nothing that a server says is opened or run.
local M = {}

local function details(request)
  local text = vim.json.encode({ tool = request.tool, version = request.version, risk = request.risk, args = request.args, permissions = request.permissions })
  vim.notify(text, vim.log.levels.INFO)
end

--- The question in words; a server's own words are told apart from those of Tamis.
local function prompt_of(request)
  local asked = request.elicitation
  if asked then
    local field = asked.field and (' It asks for: %s.'):format(asked.field) or ''
    return ("The MCP server '%s' asks (its words) while %s runs: “%s”%s"):format(asked.server, request.tool, asked.message, field)
  end
  return ('Run %s? Risk: %s. %s'):format(request.tool, request.risk, request.argsPreview)
end

--- The answer to a question; only in a coroutine, as the handlers of requests are.
function M.handler(_, request)
  local co = assert(coroutine.running())
  local items = vim.list_slice(request.options)
  if not request.elicitation then
    table.insert(items, { label = 'Details', details = true })
  end
  local function ask()
    vim.ui.select(items, {
      kind = request.elicitation and 'tamis_question' or 'tamis_approval',
      prompt = prompt_of(request),
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
