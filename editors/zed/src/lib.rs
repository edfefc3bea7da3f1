//! Starts `tamis lsp` in Zed and gives it what the user set below `lsp.tamis`. Everything else is the server's work.

use zed_extension_api::serde_json::{self, Value};
use zed_extension_api::settings::LspSettings;
use zed_extension_api::{self as zed, Command, LanguageServerId, Result, Worktree};

const MISSING: &str = "The program 'tamis' is not on the PATH. Install it (`pip install .` in a clone of Tamis), \
     or name it in the settings: \"lsp\": {\"tamis\": {\"binary\": {\"path\": \"/path/to/tamis\"}}}";

struct Tamis;

impl zed::Extension for Tamis {
    fn new() -> Self {
        Self
    }

    fn language_server_command(&mut self, id: &LanguageServerId, worktree: &Worktree) -> Result<Command> {
        let binary = LspSettings::for_worktree(id.as_ref(), worktree)?.binary.unwrap_or_default();
        let command = binary.path.or_else(|| worktree.which("tamis")).ok_or_else(|| MISSING.to_string())?;
        let mut env = worktree.shell_env();
        env.extend(binary.env.unwrap_or_default());
        Ok(Command {
            command,
            args: binary.arguments.unwrap_or_else(|| vec!["lsp".to_string()]),
            env,
        })
    }

    fn language_server_initialization_options(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        Ok(LspSettings::for_worktree(id.as_ref(), worktree)?.initialization_options)
    }

    fn language_server_workspace_configuration(
        &mut self,
        id: &LanguageServerId,
        worktree: &Worktree,
    ) -> Result<Option<Value>> {
        // The server asks for its section `tamis`.
        let settings = LspSettings::for_worktree(id.as_ref(), worktree)?.settings;
        Ok(settings.map(|settings| serde_json::json!({ "tamis": settings })))
    }
}

zed::register_extension!(Tamis);
