--- Beside a `jsonls`: in a buffer that Tamis serves too, findings, completion and hovers of manifests come from Tamis alone.
--- What `jsonls` says of other files stays as it is, and it is as before when Tamis leaves.
local M = {}

local files = { '*.tool.json', '*.tool.jsonc', 'agent_profile.json', '*.agent_profile.json', 'plugin-manifest.json' }

---@class tamis.Quieted
---@field schemas table? the schemas that the user gave
---@field handlers table<string, fun()?>
---@field supports fun(...): boolean

---@type table<integer, tamis.Quieted>
local quieted = {}

---@param buffer integer
local function served(buffer)
  return vim.api.nvim_buf_is_valid(buffer) and #vim.lsp.get_clients({ bufnr = buffer, name = 'tamis' }) > 0
end

--- Tells the client of schemas: it looks at every open file again.
local function configure(client, schemas)
  client.settings = vim.tbl_deep_extend('force', client.settings or {}, { json = {} })
  client.settings.json.schemas = schemas
  client:notify('workspace/didChangeConfiguration', { settings = client.settings })
end

--- The user's schemas without those of our files, and one for our files that says nothing.
local function without_ours(schemas)
  local left = vim.tbl_filter(function(schema)
    for _, name in ipairs(type(schema.fileMatch) == 'table' and schema.fileMatch or { schema.fileMatch }) do
      if vim.list_contains(files, name) then
        return false
      end
    end
    return true
  end, type(schemas) == 'table' and schemas or {})
  table.insert(left, { fileMatch = files, url = 'tamis:/served-by-tamis.json', schema = vim.empty_dict() })
  return left
end

local empty = {
  ['textDocument/publishDiagnostics'] = { diagnostics = {} },
  ['textDocument/diagnostic'] = { kind = 'full', items = {} },
}

-- What Neovim asks every client of a buffer for, to show all answers together.
local asked = {
  'textDocument/completion',
  'textDocument/hover',
  'textDocument/documentSymbol',
  'textDocument/formatting',
  'textDocument/rangeFormatting',
}

---@param client vim.lsp.Client
local function quiet(client)
  if not quieted[client.id] then
    local before = { schemas = vim.tbl_get(client, 'settings', 'json', 'schemas'), handlers = {}, supports = client.supports_method }
    quieted[client.id] = before
    for method, nothing in pairs(empty) do
      before.handlers[method] = client.handlers[method]
      client.handlers[method] = function(fault, result, context, ...)
        local uri = result and result.uri or vim.tbl_get(context, 'params', 'textDocument', 'uri')
        if result and uri and served(vim.uri_to_bufnr(uri)) then
          result = vim.tbl_extend('force', result, nothing)
        end
        return (before.handlers[method] or vim.lsp.handlers[method])(fault, result, context, ...)
      end
    end
    client.supports_method = function(self, method, where)
      if self ~= client then -- as it was called before 0.11
        self, method, where = client, self, method
      end
      local buffer = type(where) == 'table' and where.bufnr or where
      if
        vim.list_contains(asked, method)
        and type(buffer) == 'number'
        and served(buffer == 0 and vim.api.nvim_get_current_buf() or buffer)
      then
        return false
      end
      return before.supports(self, method, where)
    end
    configure(client, without_ours(before.schemas))
  end
  for buffer in pairs(client.attached_buffers) do
    if served(buffer) then
      vim.diagnostic.reset(vim.lsp.diagnostic.get_namespace(client.id), buffer)
      vim.diagnostic.reset(vim.lsp.diagnostic.get_namespace(client.id, true), buffer)
    end
  end
end

--- For each `jsonls` of a buffer: quiet where Tamis is there too.
---@param buffer integer
function M.attached(buffer)
  if served(buffer) then
    for _, client in ipairs(vim.lsp.get_clients({ bufnr = buffer, name = 'jsonls' })) do
      quiet(client)
    end
  end
end

--- Gives every `jsonls` back what it had, once no Tamis is left. A client that was told to stop needs a moment.
---@param tries? integer
function M.left(tries)
  tries = tries or 20
  if #vim.lsp.get_clients({ name = 'tamis' }) > 0 then
    return tries > 0 and vim.defer_fn(function()
      M.left(tries - 1)
    end, 100)
  end
  for id, before in pairs(quieted) do
    quieted[id] = nil
    local client = vim.lsp.get_client_by_id(id)
    if client then
      for method in pairs(empty) do
        client.handlers[method] = before.handlers[method]
      end
      client.supports_method = before.supports
      configure(client, before.schemas)
      -- Neovim 0.11 cannot be told to ask again by a server that it asks for findings.
      for buffer in pairs(client:supports_method('textDocument/diagnostic') and client.attached_buffers or {}) do
        client:request('textDocument/diagnostic', { textDocument = vim.lsp.util.make_text_document_params(buffer) }, nil, buffer)
      end
    end
  end
end

return M
