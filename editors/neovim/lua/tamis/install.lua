--- Where the server's program is, and `:Tamis install`, which puts one into Neovim's data folder when it is asked to.
--- Nothing is taken from the folder that is open, and nothing is installed unasked.
local tamis = require('tamis')
local M = {}

local home = vim.fs.joinpath(vim.fn.stdpath('data') --[[@as string]], 'tamis')
local environment = vim.fs.joinpath(home, 'venv')
local bin = vim.fn.has('win32') == 1 and 'Scripts' or 'bin'

---@param path string?
local function runs(path)
  return path ~= nil and path ~= '' and vim.fn.executable(path) == 1
end

--- The places that are looked into, in order, each with what it is.
---@return { what: string, path: string }[]
function M.places()
  local active = vim.env.VIRTUAL_ENV
  local tools = vim.env.UV_TOOL_BIN_DIR or vim.env.XDG_BIN_HOME or vim.fs.joinpath(vim.uv.os_homedir() or '', '.local', 'bin')
  return {
    { what = 'the virtual environment that Neovim was started in', path = active and vim.fs.joinpath(active, bin, 'tamis') or '' },
    { what = 'PATH', path = vim.fn.exepath('tamis') },
    { what = ':Tamis install', path = vim.fs.joinpath(environment, bin, 'tamis') },
    { what = ':Tamis install with pipx', path = vim.fs.joinpath(home, 'bin', 'tamis') },
    { what = "uv's and pipx's tools", path = vim.fs.joinpath(tools, 'tamis') },
  }
end

--- The command of the server: the first place that has the program; its bare name where none has.
---@return string[]
function M.command()
  for _, place in ipairs(M.places()) do
    if runs(place.path) then
      return { place.path, 'lsp' }
    end
  end
  return { 'tamis', 'lsp' }
end

--- What is installed: the clone that the plug-in lies in; nil for a plug-in without one.
---@return string?
local function clone()
  local here = debug.getinfo(1, 'S').source:sub(2)
  local root = vim.fs.normalize(vim.fn.fnamemodify(here, ':p:h:h:h:h:h'))
  return vim.uv.fs_stat(vim.fs.joinpath(root, 'pyproject.toml')) and vim.uv.fs_stat(vim.fs.joinpath(root, 'protocols')) and root or nil
end

---@class tamis.Way
---@field name string
---@field program string
---@field steps string[][]
---@field env? table<string, string>

---@return tamis.Way[] those whose program is there
local function ways(what)
  local python = vim.fs.joinpath(environment, bin, 'python')
  local all = {
    {
      name = 'uv',
      program = 'uv',
      steps = { { 'uv', 'venv', '--clear', environment }, { 'uv', 'pip', 'install', '--python', python, what } },
    },
    {
      name = 'pipx',
      program = 'pipx',
      steps = { { 'pipx', 'install', '--force', what } },
      env = { PIPX_HOME = vim.fs.joinpath(home, 'pipx'), PIPX_BIN_DIR = vim.fs.joinpath(home, 'bin') },
    },
    {
      name = 'venv',
      program = 'python3',
      steps = { { 'python3', '-m', 'venv', '--clear', environment }, { python, '-m', 'pip', 'install', what } },
    },
  }
  return vim.tbl_filter(function(way)
    return vim.fn.executable(way.program) == 1
  end, all)
end

local function fail(text)
  vim.notify('Tamis: not installed. ' .. vim.trim(text), vim.log.levels.ERROR)
  tamis.event('TamisInstallEnd', { ok = false })
end

--- Does the steps one after the other, away from the folder that is open: its files configure neither uv nor pip.
---@param way tamis.Way
---@param at integer
local function go(way, at)
  if way.steps[at] then
    local started, fault = pcall(vim.system, way.steps[at], { text = true, cwd = home, env = way.env }, function(out)
      vim.schedule(function()
        if out.code ~= 0 then
          return fail(('%s ended with %d: %s'):format(table.concat(way.steps[at], ' '), out.code, (out.stderr or ''):sub(-1000)))
        end
        go(way, at + 1)
      end)
    end)
    if not started then
      fail(tostring(fault))
    end
    return
  end
  local program = vim.fs.joinpath(way.name == 'pipx' and vim.fs.joinpath(home, 'bin') or vim.fs.joinpath(environment, bin), 'tamis')
  vim.system({ program, '--version' }, { text = true, cwd = home, timeout = 20000 }, function(out)
    vim.schedule(function()
      local version = vim.trim(out.stdout or '')
      if out.code ~= 0 or not version:find('0%.1%.') then
        return fail(('%s says %s; this plug-in was made for 0.1'):format(program, version ~= '' and version or 'no version'))
      end
      vim.lsp.config('tamis', { cmd = { program, 'lsp' } })
      vim.notify(('Tamis: %s is installed; :Tamis restart starts it'):format(version), vim.log.levels.INFO)
      tamis.event('TamisInstallEnd', { ok = true, program = program })
    end)
  end)
end

--- Asks how to install, shows what will be run, and does it.
---@param what string? what the installer is given: a folder, a wheel, a requirement; the plug-in's own clone without it
function M.install(what)
  -- A path is written as one: a requirement must not become a folder of its name that lies in the open one.
  what = what and (what:match('^[./~]') and vim.fn.fnamemodify(what, ':p') or what) or clone()
  if not what then
    return vim.notify('Tamis: the plug-in lies in no clone; name what to install: :Tamis install /path/to/clone', vim.log.levels.WARN)
  end
  local offered = ways(what)
  if #offered == 0 then
    return vim.notify('Tamis: neither uv, pipx nor python3 was found; install one of them', vim.log.levels.WARN)
  end
  vim.ui.select(offered, {
    prompt = ('Install %s into %s with'):format(what, home),
    format_item = function(way)
      return way.name
        .. ': '
        .. table.concat(
          vim.tbl_map(function(step)
            return table.concat(step, ' ')
          end, way.steps),
          ' && '
        )
    end,
  }, function(way)
    if way then
      vim.fn.mkdir(home, 'p')
      vim.notify('Tamis: installing…', vim.log.levels.INFO)
      go(way, 1)
    end
  end)
end

return M
