-- Tamis for Neovim's own LSP client (0.11 and later). Enable with `vim.lsp.enable('tamis')`; change parts of it with
-- `vim.lsp.config('tamis', { ... })` or a file `after/lsp/tamis.lua`.

---@class tamis.InitOptions
---@field trusted? boolean true: the folder's settings count; false: analyse only; nil: what `tamis trust` recorded
---@field schemaDiagnostics? 'on'|'off' 'off' when another server checks manifests against the schema already
---@field settings? table the settings of tamis.toml, by the same names

local own_filetypes = { tam = true, vcp = true, toolaction = true }
local markers = { { 'tamis.toml', '.tamis' }, { '.git' } }

--- What is said of a folder's trust: `vim.g.tamis_trusted` as it is, or with 'secure' whether Neovim trusts its tamis.toml (`:trust`).
---@param root string?
---@return boolean?
local function trusts(root)
  local word = vim.g.tamis_trusted
  if word ~= 'secure' then
    if type(word) == 'boolean' then
      return word
    end
    return nil
  end
  local file = root and vim.fs.joinpath(root, 'tamis.toml')
  if not file or not vim.uv.fs_stat(file) then
    return nil
  end
  -- Asks about a file that is new or changed; nil where the user does not trust it.
  return vim.secure.read(file) ~= nil
end

---@type vim.lsp.Config
return {
  -- The first place that has the program; `:checkhealth tamis` names them.
  cmd = require('tamis.install').command(),
  filetypes = { 'json', 'jsonc', 'markdown', 'text', 'tam', 'vcp', 'toolaction', 'toml', 'python' },
  -- A function instead of markers: with markers the server would attach to every JSON and Markdown buffer.
  root_dir = function(buffer, on_dir)
    local path = vim.api.nvim_buf_get_name(buffer)
    local name = vim.fs.basename(path)
    local root = path ~= '' and vim.fs.root(path, markers) or nil
    local folder = path ~= '' and vim.fs.dirname(path) or vim.fn.getcwd()
    local filetype = vim.bo[buffer].filetype
    if name == 'tamis.toml' then
      on_dir(folder)
    elseif name:match('%.tool%.jsonc?$') or name == 'agent_profile.json' or name:match('%.agent_profile%.json$') then
      on_dir(root or folder)
    elseif name == 'plugin-manifest.json' then
      on_dir(root or folder)
    elseif own_filetypes[filetype] then
      on_dir(root or folder)
    elseif filetype == 'markdown' or filetype == 'text' or filetype == 'python' then
      local inside = root or folder
      if require('tamis').holds_manifests(inside) then
        on_dir(inside)
      end
    end
  end,
  workspace_required = false,
  before_init = function(params, config)
    -- The server speaks Chinese to who reads messages in Chinese (`:language messages`), and English to everyone else.
    params.locale = params.locale or vim.v.lang
    local word = trusts(type(config.root_dir) == 'string' and config.root_dir or nil)
    local options = params.initializationOptions
    if word ~= nil and type(options) == 'table' and options.trusted == nil then
      options.trusted = word
    end
  end,
  ---@type tamis.InitOptions
  init_options = { trusted = nil },
  capabilities = {
    experimental = {
      serverStatusNotification = true,
      tamis = { approval = 'request', elicitation = true, forms = true, output = true, try = true },
    },
  },
  -- Lenses and code actions come here; loaded with the first of them.
  commands = vim
    .iter({ 'run', 'dryRun', 'runExample', 'testExamples', 'rerunLast', 'copyAs', 'convert', 'showReferences', 'try' })
    :fold({}, function(all, name)
      all['tamis.' .. name] = function(command, context)
        require('tamis.commands').of_server()[command.command](command, context)
      end
      return all
    end),
  handlers = {
    ['tool/requestApproval'] = function(...)
      return require('tamis.approval').handler(...)
    end,
    ['tool/approvalResolved'] = function(...)
      return require('tamis.approval').resolved(...)
    end,
    ['tool/output'] = function(_, told)
      require('tamis.run').output(told)
    end,
    ['experimental/serverStatus'] = function(_, told)
      local tamis = require('tamis')
      local before = tamis.tools
      tamis.tools = tonumber((told.message or ''):match('^tools: (%d+)') or (told.message or ''):match('^工具：(%d+)'))
      if tamis.tools ~= before then
        tamis.event('TamisRegistryChanged', { tools = tamis.tools, message = told.message })
      end
      tamis.event('TamisStatus')
    end,
    ['experimental/changeTestState'] = function(_, params, context)
      require('tamis.tests').told(context.client_id, params)
    end,
    ['experimental/discoveredTests'] = function() end,
    ['experimental/endRunTest'] = function(_, _, context)
      require('tamis.tests').ended(context.client_id)
    end,
  },
  settings = { tamis = vim.empty_dict() },
}
