"""What the Neovim client says of a folder's trust when it starts (ruling 58): `vim.g.tamis_trusted`, and Neovim's own trust."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.editors.neovim import PLUGIN, neovim

__all__ = ["neovim"]

SCRIPT = """
local plugin, root, bare = arg[1], arg[2], arg[3]
vim.opt.runtimepath:prepend(plugin)
local config = dofile(plugin .. '/lsp/tamis.lua')
local function said(word, folder, given)
  vim.g.tamis_trusted = word
  local params = { initializationOptions = { trusted = given } }
  config.before_init(params, { root_dir = folder })
  local trusted = params.initializationOptions.trusted
  if trusted == nil then
    return 'left out'
  end
  return trusted
end
local seen = {
  unset = said(nil, root),
  yes = said(true, root),
  no = said(false, root),
  given = said(true, root, false),
  bare = said('secure', bare),
  nothing = said('secure', nil),
}
local file = root .. '/tamis.toml'
vim.secure.trust({ action = 'deny', path = file })
seen.denied = said('secure', root)
vim.cmd.edit(file)
vim.secure.trust({ action = 'allow', bufnr = 0 })
seen.allowed = said('secure', root)
io.stdout:write(vim.json.encode(seen))
"""


def test_trust_is_left_to_the_record_unless_the_user_or_neovim_says_otherwise(neovim: str, tmp_path: Path) -> None:
    root, bare, script = tmp_path / "root", tmp_path / "bare", tmp_path / "session.lua"
    for folder in (root, bare):
        folder.mkdir()
    (root / "tamis.toml").write_text('[policy]\nallowHosts = ["api.test"]\n')
    script.write_text(SCRIPT)
    names = ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME")
    env = {"PATH": os.environ.get("PATH", os.defpath), **{name: str(tmp_path / "home") for name in names}}
    command = [neovim, "--headless", "-u", "NONE", "-i", "NONE", "-l", str(script), str(PLUGIN), str(root), str(bare)]
    ran = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert json.loads(ran.stdout) == {
        "unset": "left out",
        "yes": True,
        "no": False,
        "given": False,
        "bare": "left out",
        "nothing": "left out",
        "denied": False,
        "allowed": True,
    }
