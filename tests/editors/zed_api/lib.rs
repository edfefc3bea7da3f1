//! A stand-in for `zed_extension_api` 0.7, with as much of it as the extension uses: names, types and signatures are those of the crate's sources.
//! What Zed would answer comes from the environment, and `drive` prints what the extension makes of it.

use std::collections::{BTreeMap, HashMap};

pub type Result<T, E = String> = core::result::Result<T, E>;
pub type EnvVars = Vec<(String, String)>;

#[derive(Debug, Clone)]
pub struct Command {
    pub command: String,
    pub args: Vec<String>,
    pub env: EnvVars,
}

#[derive(Debug, PartialEq, Eq, Clone)]
pub struct LanguageServerId(String);

impl LanguageServerId {
    pub fn new(value: String) -> Self {
        Self(value)
    }
}

impl AsRef<str> for LanguageServerId {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

/// In Zed a resource of the host.
pub struct Worktree {}

impl Worktree {
    pub fn which(&self, name: &str) -> Option<String> {
        std::env::var(format!("ZED_WHICH_{name}")).ok()
    }

    pub fn shell_env(&self) -> EnvVars {
        vec![("PATH".into(), "/shell".into()), ("FROM_SHELL".into(), "1".into())]
    }
}

pub mod serde_json {
    use super::BTreeMap;

    #[derive(Debug, Clone, PartialEq)]
    pub enum Value {
        /// A text that is JSON already.
        Raw(String),
        Object(BTreeMap<String, Value>),
    }

    impl std::fmt::Display for Value {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            match self {
                Value::Raw(text) => write!(f, "{text}"),
                Value::Object(members) => {
                    let parts: Vec<_> = members.iter().map(|(name, value)| format!("{name:?}:{value}")).collect();
                    write!(f, "{{{}}}", parts.join(","))
                }
            }
        }
    }

    pub use crate::json;
}

#[macro_export]
macro_rules! json {
    ({ $($name:literal : $value:expr),* $(,)? }) => {
        $crate::serde_json::Value::Object([$(($name.to_string(), $value)),*].into_iter().collect())
    };
}

pub mod settings {
    use super::{serde_json::Value, HashMap, Result, Worktree};

    #[derive(Default, Debug)]
    pub struct LspSettings {
        pub binary: Option<CommandSettings>,
        pub initialization_options: Option<Value>,
        pub settings: Option<Value>,
    }

    #[derive(Default, Debug, PartialEq, Eq)]
    pub struct CommandSettings {
        pub path: Option<String>,
        pub arguments: Option<Vec<String>>,
        pub env: Option<HashMap<String, String>>,
    }

    impl LspSettings {
        pub fn for_worktree(language_server_name: &str, _worktree: &Worktree) -> Result<Self> {
            let read = |name: &str| std::env::var(format!("ZED_{language_server_name}_{name}")).ok();
            if let Some(fault) = read("fault") {
                return Err(fault);
            }
            let (path, arguments, env) = (read("path"), read("arguments"), read("env"));
            let set = path.is_some() || arguments.is_some() || env.is_some();
            Ok(Self {
                binary: set.then(|| CommandSettings {
                    path,
                    arguments: arguments.map(|text| text.split(' ').map(str::to_string).collect()),
                    env: env.map(|text| HashMap::from([text.split_once('=').map(|(a, b)| (a.into(), b.into())).unwrap()])),
                }),
                initialization_options: read("options").map(Value::Raw),
                settings: read("settings").map(Value::Raw),
            })
        }
    }
}

pub trait Extension: Send + Sync {
    fn new() -> Self
    where
        Self: Sized;

    fn language_server_command(&mut self, _: &LanguageServerId, _: &Worktree) -> Result<Command> {
        Err("`language_server_command` not implemented".to_string())
    }

    fn language_server_initialization_options(
        &mut self,
        _: &LanguageServerId,
        _: &Worktree,
    ) -> Result<Option<serde_json::Value>> {
        Ok(None)
    }

    fn language_server_workspace_configuration(
        &mut self,
        _: &LanguageServerId,
        _: &Worktree,
    ) -> Result<Option<serde_json::Value>> {
        Ok(None)
    }
}

/// Asks an extension everything that Zed asks when it starts a server, and prints the answers as JSON.
pub fn drive(mut extension: Box<dyn Extension>) {
    let (id, worktree) = (LanguageServerId::new("tamis".into()), Worktree {});
    let shown = |value: Result<Option<serde_json::Value>>| match value {
        Ok(value) => value.map_or("null".into(), |value| value.to_string()),
        Err(fault) => format!("{{\"fault\":{fault:?}}}"),
    };
    let command = match extension.language_server_command(&id, &worktree) {
        Ok(it) => format!("{{\"command\":{:?},\"args\":{:?},\"env\":{:?}}}", it.command, it.args, pairs(&it.env)),
        Err(fault) => format!("{{\"fault\":{fault:?}}}"),
    };
    let options = shown(extension.language_server_initialization_options(&id, &worktree));
    let configuration = shown(extension.language_server_workspace_configuration(&id, &worktree));
    println!("{{\"command\":{command},\"options\":{options},\"configuration\":{configuration}}}");
}

fn pairs(env: &EnvVars) -> Vec<String> {
    env.iter().map(|(name, value)| format!("{name}={value}")).collect()
}

#[macro_export]
macro_rules! register_extension {
    ($extension_type:ty) => {
        pub fn registered() -> Box<dyn zed_extension_api::Extension> {
            Box::new(<$extension_type as zed_extension_api::Extension>::new())
        }
    };
}
