--- `:Tamis try`: asks for the arguments of a tool one after the other, then runs it or writes the call. A question that is left ends it.
local tamis = require('tamis')
local M = {}

local function object(value)
  return type(value) == 'table' and not vim.islist(value) and value or {}
end

--- The parameters of a schema, those that are needed first.
local function fields(parameters)
  local needed, rest = {}, {}
  local required = object(parameters).required
  required = type(required) == 'table' and required or {}
  local properties = object(object(parameters).properties)
  for _, name in ipairs(vim.fn.sort(vim.tbl_keys(properties))) do
    local schema = object(properties[name])
    local is_needed = vim.list_contains(required, name)
    table.insert(is_needed and needed or rest, { name = name, schema = schema, needed = is_needed })
  end
  return vim.list_extend(needed, rest)
end

--- What was written, as a value; nil with a reason where it is none of its type.
local function value_of(field, text)
  local type_ = field.schema.type
  if type_ == 'string' then
    return text
  end
  if type_ == 'integer' or type_ == 'number' then
    local number = tonumber(text)
    if not number or (type_ == 'integer' and number % 1 ~= 0) then
      return nil, type_ == 'integer' and 'a whole number is needed' or 'a number is needed'
    end
    return number
  end
  local ok, value = pcall(vim.json.decode, text)
  if ok then
    return value
  end
  return nil, 'JSON is needed'
end

--- Asks for one argument; `done` gets its value, or nothing where it is not given.
local function ask(field, done)
  local schema = field.schema
  local about = type(schema.description) == 'string' and schema.description:gsub('%s+', ' ') or ''
  local prompt = ('%s%s%s: '):format(field.name, field.needed and '' or ' (optional)', about ~= '' and ' - ' .. about or '')
  local choices = type(schema.enum) == 'table' and vim.deepcopy(schema.enum) or schema.type == 'boolean' and { true, false } or nil
  if choices then
    local items = {}
    for _, choice in ipairs(choices) do
      table.insert(items, { value = choice, text = vim.json.encode(choice) })
    end
    if not field.needed then
      table.insert(items, { text = 'not given' })
    end
    local options = {
      prompt = prompt,
      format_item = function(item)
        return item.text
      end,
    }
    return vim.ui.select(items, options, function(item)
      if item then
        done(item.value)
      end
    end)
  end
  local function take(text)
    if text == nil then
      return
    end
    if text == '' and not (field.needed and schema.type == 'string') then
      if field.needed then
        vim.notify(('Tamis: %s is needed'):format(field.name), vim.log.levels.WARN)
        return ask(field, done)
      end
      return done(nil)
    end
    local value, fault = value_of(field, text)
    if fault then
      vim.notify(('Tamis: %s: %s'):format(field.name, fault), vim.log.levels.WARN)
      return ask(field, done)
    end
    done(value)
  end
  if schema['x-secret'] == true then
    return take(vim.fn.inputsecret(prompt))
  end
  vim.ui.input({ prompt = prompt }, take)
end

local function show(tool_id, text)
  vim.cmd.new()
  local buffer = vim.api.nvim_get_current_buf()
  vim.bo[buffer].buftype, vim.bo[buffer].bufhidden, vim.bo[buffer].swapfile = 'nofile', 'wipe', false
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, vim.split(text, '\n'))
  pcall(vim.api.nvim_buf_set_name, buffer, 'tamis-try://' .. tool_id)
end

local function request(client, method, params, done)
  client:request(method, params, function(fault, result)
    if fault then
      return vim.notify('Tamis: ' .. fault.message, vim.log.levels.WARN)
    end
    done(result)
  end)
end

local function run(client, tool_id, args, secrets)
  request(client, 'tool/execute', { toolId = tool_id, args = args }, function(result)
    local failed = type(result.error) == 'table'
    local shown = failed and ('%s: %s'):format(result.error.type, result.error.message) or vim.json.encode(result.output)
    for _, secret in ipairs(secrets) do
      if #secret >= 4 then
        shown = shown:gsub(vim.pesc(vim.json.encode(secret):sub(2, -2)), '***'):gsub(vim.pesc(secret), '***')
      end
    end
    show(tool_id, ('%s %s, %d ms\n%s'):format(result.status == 'success' and '✓' or '✗', result.status, result.durationMs, shown))
  end)
end

local function write(client, buffer, tool_id, args, secret)
  local written = vim.deepcopy(args)
  for name in pairs(secret) do
    written[name] = ('{{secret:%s}}'):format(name:gsub('%W', '_'):upper())
  end
  request(client, 'tool/convert', { calls = { { toolId = tool_id, args = written } }, to = 'action' }, function(made)
    vim.api.nvim_set_current_buf(buffer)
    vim.api.nvim_put(vim.split(made.text, '\n'), 'l', true, true)
  end)
end

local function form(client, buffer, tool_id, parameters)
  local args, secret, secrets = vim.empty_dict(), {}, {}
  local left = fields(parameters)
  local function next_field()
    local field = table.remove(left, 1)
    if field then
      return ask(field, function(value)
        if value ~= nil then
          args[field.name] = value
          if field.schema['x-secret'] == true then
            secret[field.name] = true
            table.insert(secrets, tostring(value))
          end
        end
        next_field()
      end)
    end
    vim.ui.select({ 'Run', 'Write the call' }, { prompt = tool_id }, function(what)
      if what == 'Run' then
        run(client, tool_id, args, secrets)
      elseif what then
        write(client, buffer, tool_id, args, secret)
      end
    end)
  end
  next_field()
end

--- Asks for the arguments of a tool; which one is asked where nobody says.
---@param tool_id string?
function M.try(tool_id)
  local client, buffer = tamis.client(), vim.api.nvim_get_current_buf()
  if not client then
    return
  end
  local function open(id)
    request(client, 'tool/describe', { toolId = id }, function(found)
      form(client, buffer, id, found.definition.parameters)
    end)
  end
  if tool_id then
    return open(tool_id)
  end
  request(client, 'tool/list', vim.empty_dict(), function(found)
    vim.ui.select(found.tools, {
      prompt = 'Try a tool',
      format_item = function(one)
        return one.toolId
      end,
    }, function(one)
      if one then
        open(one.toolId)
      end
    end)
  end)
end

return M
