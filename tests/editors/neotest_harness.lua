-- What an adapter needs of neotest and nio, by their documented interfaces: tasks that wait, events, and the tree of positions.
local function step(co, ...)
  local ok, waiting = coroutine.resume(co, ...)
  if not ok then
    error(debug.traceback(co, waiting))
  end
  if waiting then
    waiting(function(...)
      local values = { ... }
      vim.schedule(function()
        step(co, unpack(values))
      end)
    end)
  end
end

local nio = { control = {} }
function nio.wrap(work, count)
  return function(...)
    local arguments = { ... }
    return coroutine.yield(function(done)
      arguments[count] = done
      work(unpack(arguments, 1, count))
    end)
  end
end
function nio.run(work)
  step(coroutine.create(work))
end
nio.scheduler = nio.wrap(vim.schedule, 1)
nio.sleep = nio.wrap(function(ms, done)
  vim.defer_fn(done, ms)
end, 2)
function nio.control.event()
  local is_set, waiting = false, {}
  return {
    is_set = function()
      return is_set
    end,
    set = function()
      is_set = true
      for _, done in ipairs(waiting) do
        done()
      end
    end,
    wait = nio.wrap(function(done)
      if is_set then
        done()
      else
        table.insert(waiting, done)
      end
    end, 1),
  }
end

local Tree = {}
Tree.__index = Tree
function Tree.from_list(list)
  local tree = setmetatable({ position = list[1], inner = {} }, Tree)
  for at = 2, #list do
    table.insert(tree.inner, Tree.from_list(list[at]))
  end
  return tree
end
function Tree:data()
  return self.position
end
function Tree:children()
  return self.inner
end
function Tree:iter()
  local all = { self.position }
  for _, child in ipairs(self.inner) do
    table.insert(all, child.position)
  end
  return ipairs(all)
end

package.loaded['nio'] = nio
package.loaded['neotest.types'] = { Tree = Tree }
return nio
