--- What users and their plug-ins call: `require('tamis')`. Nothing has to be set up.
local M = {}

---@class tamis.Options
---@field virtual_text? boolean show how a run goes and what came of it at the end of its block (true)
---@field forms? string[] the forms that `:Tamis copy` offers

---@type tamis.Options
M.options = { virtual_text = true, forms = { 'cli', 'mcp', 'openai', 'anthropic', 'action', 'tam', 'vcp' } }

local renamed = { virtualText = 'virtual_text' }

--- Changes options; not needed for any of them to have its default.
---@param options? tamis.Options
function M.setup(options)
  for name, value in pairs(options or {}) do
    if renamed[name] then
      vim.deprecate(('option %s'):format(name), renamed[name], '1.0', 'tamis', false)
      name = renamed[name]
    end
    if M.options[name] == nil then
      vim.notify(("tamis: there is no option '%s'; see :help tamis-options"):format(name), vim.log.levels.WARN)
    else
      M.options[name] = value
    end
  end
end

--- What runs, or how many tools there are; empty where no server is attached. For a statusline.
---@return string
function M.status()
  local running = require('tamis.run').running()
  if running then
    return running
  end
  local client = vim.lsp.get_clients({ name = 'tamis' })[1]
  if not client then
    return ''
  end
  return 'tamis' .. (M.tools and (' %d tools'):format(M.tools) or '')
end

--- The manifest's schema for SchemaStore.nvim: `schemas = require('schemastore').json.schemas({ extra = { require('tamis').schema() } })`.
---@return { name: string, description: string, fileMatch: string[], url: string }
function M.schema()
  local here = vim.fs.dirname(vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))))
  local file = vim.fs.joinpath(vim.fs.dirname(vim.fs.dirname(here)), 'schemas', 'tool.schema.json')
  return {
    name = 'Tamis tool manifest',
    description = 'Manifests of agent tools',
    fileMatch = { '*.tool.json', '*.tool.jsonc' },
    url = vim.uri_from_fname(vim.fs.normalize(file)),
  }
end

local searched_entries = 5000

--- Whether a folder holds tool manifests, looked up once per folder and bounded.
---@type table<string, boolean>
local holds = {}

---@param root string
---@return boolean
function M.holds_manifests(root)
  if holds[root] ~= nil then
    return holds[root]
  end
  holds[root] = false
  local seen = 0
  local function skip(name)
    local base = vim.fs.basename(name)
    return base ~= 'node_modules' and base:sub(1, 1) ~= '.'
  end
  for name, kind in vim.fs.dir(root, { depth = 5, skip = skip }) do
    seen = seen + 1
    if kind == 'file' and (name:match('%.tool%.json$') or vim.fs.basename(name) == 'tamis.toml') then
      holds[root] = true
      break
    end
    if seen > searched_entries then
      break
    end
  end
  -- A folder without manifests may get its first one; the answer "yes" only stays.
  local answer = holds[root]
  if not answer then
    holds[root] = nil
  end
  return answer
end

--- Tells those who listen (`User TamisRunStart` and others) what happened.
---@param name string
---@param data? table
function M.event(name, data)
  vim.api.nvim_exec_autocmds('User', { pattern = name, data = data, modeline = false })
end

--- The attached client of a buffer, else any; nil with a message where there is none.
---@param buffer? integer
---@return vim.lsp.Client?
function M.client(buffer)
  local client = vim.lsp.get_clients({ bufnr = buffer or 0, name = 'tamis' })[1] or vim.lsp.get_clients({ name = 'tamis' })[1]
  if not client then
    vim.notify('Tamis: no server is attached; see :checkhealth tamis', vim.log.levels.WARN)
  end
  return client
end

--- The client that a buffer is attached to; nil with a message that says how it is attached. For what looks into the buffer's text.
---@param buffer integer
---@return vim.lsp.Client?
function M.attached(buffer)
  local client = vim.lsp.get_clients({ bufnr = buffer, name = 'tamis' })[1]
  if not client and M.client(buffer) then
    vim.notify(
      ("Tamis: the server is not attached to this buffer (filetype '%s'), so that no call in it is found. It attaches to texts below a folder with "):format(
        vim.bo[buffer].filetype
      ) .. 'tools or a tamis.toml, and anywhere after `:set filetype=tam` (vcp, toolaction); see :checkhealth tamis',
      vim.log.levels.WARN
    )
  end
  return client
end

return M
