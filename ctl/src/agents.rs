//! The agents that are known: where they keep their servers, and how they write them.

pub(crate) mod edit;
pub(crate) mod record;

use edit::Shape;
use nexus_config::{
    Format, Layer, Server, Source,
    belief::read_within,
    node::Node,
    read::{Dialect, Document, read_tree},
    source::MAX_FOREIGN,
    syntax,
};
use std::{
    env,
    path::{Path, PathBuf},
    sync::Arc,
};

/// One agent.
#[derive(Debug)]
pub(crate) struct Agent {
    /// As it is typed.
    pub(crate) id: &'static str,
    /// As it is called.
    pub(crate) name: &'static str,
    /// Where it may keep its servers: the first that is there, or else the first. `~` is the home, `<cfg>` the
    /// folder for configurations of this system.
    places: &'static [&'static str],
    /// Under which name they stand there.
    pub(crate) root: &'static [&'static str],
    /// How an entry looks.
    pub(crate) shape: Shape,
    /// A `timeout` is in milliseconds.
    milliseconds: bool,
    /// `$NAME` is a variable.
    bare_variables: bool,
}

macro_rules! agents {
    ($($id:literal $name:literal $root:expr, $shape:ident $([$flag:ident])* : $($place:literal),+;)*) => {
        &[$(Agent {
            id: $id, name: $name, places: &[$($place),+], root: &$root, shape: Shape::$shape,
            milliseconds: false $(|| stringify!($flag).len() == "milliseconds".len())*,
            bare_variables: false $(|| stringify!($flag).len() == "bare_variables".len())*,
        },)*]
    };
}

/// All that are known.
pub(crate) const ALL: &[Agent] = agents! {
    "claude-desktop" "Claude Desktop" ["mcpServers"], Plain: "<cfg>/Claude/claude_desktop_config.json", "%LOCALAPPDATA%/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude/claude_desktop_config.json";
    "claude-code" "Claude Code" ["mcpServers"], Typed: "~/.claude.json";
    "cursor" "Cursor" ["mcpServers"], Plain: "~/.cursor/mcp.json";
    "vscode" "VS Code" ["servers"], Typed: "<cfg>/Code/User/mcp.json", "<cfg>/Code - Insiders/User/mcp.json", "~/.vscode-server/data/User/mcp.json";
    "copilot" "Copilot CLI" ["mcpServers"], Copilot: "~/.copilot/mcp-config.json";
    "codex" "Codex" ["mcp_servers"], Plain: "~/.codex/config.toml";
    "gemini" "Gemini CLI" ["mcpServers"], Plain [milliseconds] [bare_variables]: "~/.gemini/settings.json";
    "qwen" "Qwen Code" ["mcpServers"], Plain [milliseconds] [bare_variables]: "~/.qwen/settings.json";
    "antigravity" "Antigravity" ["mcpServers"], Plain: "~/.gemini/antigravity/mcp_config.json", "~/.gemini/config/mcp_config.json";
    "windsurf" "Windsurf" ["mcpServers"], Plain: "~/.codeium/windsurf/mcp_config.json", "~/.codeium/mcp_config.json";
    "zed" "Zed" ["context_servers"], Plain: "~/.config/zed/settings.json", "<cfg>/Zed/settings.json";
    "cline" "Cline" ["mcpServers"], Plain: "<cfg>/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "~/.cline/data/settings/cline_mcp_settings.json";
    "roo" "Roo Code" ["mcpServers"], Plain: "<cfg>/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json";
    "continue" "Continue" ["mcpServers"], Named: "~/.continue/config.yaml";
    "opencode" "opencode" ["mcp"], Opencode [milliseconds]: "~/.config/opencode/opencode.json", "~/.config/opencode/opencode.jsonc";
    "goose" "goose" ["extensions"], Goose: "~/.config/goose/config.yaml", "<cfg>/Block/goose/config/config.yaml";
    "lmstudio" "LM Studio" ["mcpServers"], Plain: "~/.lmstudio/mcp.json";
    "kiro" "Kiro" ["mcpServers"], Plain: "~/.kiro/settings/mcp.json";
    "amp" "Amp" ["amp.mcpServers"], Plain: "~/.config/amp/settings.json";
    "amazon-q" "Amazon Q" ["mcpServers"], Plain: "~/.aws/amazonq/mcp.json";
    "warp" "Warp" ["mcpServers"], Plain: "~/.warp/.mcp.json";
    "kimi" "Kimi" ["mcpServers"], Plain: "~/.kimi/mcp.json";
    "factory" "Factory" ["mcpServers"], Plain: "~/.factory/mcp.json";
    "trae" "Trae" ["mcpServers"], Plain: "<cfg>/Trae/User/mcp.json";
    "junie" "Junie" ["mcpServers"], Plain: "~/.junie/mcp/mcp.json";
    "home-manager" "home-manager" ["mcpServers"], Plain: "~/.config/mcp/mcp.json";
    "vibe" "Mistral Vibe" ["mcp_servers"], Named: "~/.vibe/config.toml";
};

/// What an agent has.
pub(crate) struct Found {
    pub(crate) source: Arc<Source>,
    pub(crate) document: Document,
}

impl Agent {
    /// The one of that name.
    pub(crate) fn find(name: &str) -> Option<&'static Self> {
        let plain = |text: &str| text.to_lowercase().replace([' ', '-', '_'], "");
        ALL.iter()
            .find(|agent| plain(agent.id) == plain(name) || plain(agent.name) == plain(name))
    }

    /// Where it keeps its servers: the file that is there, or else the one that it would have.
    pub(crate) fn file(&self) -> Option<PathBuf> {
        let moved = match self.id {
            "codex" => {
                env::var_os("CODEX_HOME").map(|home| PathBuf::from(home).join("config.toml"))
            }
            "cline" => env::var_os("CLINE_MCP_SETTINGS_PATH").map(PathBuf::from),
            "opencode" => env::var_os("OPENCODE_CONFIG").map(PathBuf::from),
            "copilot" => {
                env::var_os("COPILOT_HOME").map(|home| PathBuf::from(home).join("mcp-config.json"))
            }
            _ => None,
        };
        let places: Vec<PathBuf> = moved
            .into_iter()
            .chain(self.places.iter().filter_map(|place| locate(place)))
            .collect();
        places
            .iter()
            .find(|place| place.is_file())
            .or(places.first())
            .cloned()
    }

    /// Whether it is used on this machine, as far as one can see.
    pub(crate) fn is_here(&self) -> bool {
        let Some(file) = self.file() else {
            return false;
        };
        // A file in the home itself says nothing about its folder.
        let own_folder = self
            .places
            .first()
            .is_some_and(|place| place.matches('/').count() > 1);
        file.is_file() || (own_folder && file.parent().is_some_and(Path::is_dir))
    }

    /// What it has, if it has a file.
    pub(crate) fn read(&self, path: &Path) -> std::io::Result<Option<Found>> {
        if !path.is_file() {
            return Ok(None);
        }
        Ok(Some(
            self.read_bytes(path, &read_within(path, MAX_FOREIGN)?),
        ))
    }

    fn read_bytes(&self, path: &Path, bytes: &[u8]) -> Found {
        let dialect = Dialect {
            milliseconds: self.milliseconds,
            bare_variables: self.bare_variables,
            lenient: true,
        };
        let broken = |diagnosis| Document {
            diagnoses: vec![diagnosis],
            ..Document::default()
        };
        let source = match Source::of_foreign(path, Layer::User, bytes) {
            Ok(source) => source,
            Err(diagnosis) => {
                return Found {
                    source: Source::new(path, Layer::User, ""),
                    document: broken(*diagnosis),
                };
            }
        };
        let document = match syntax::parse(&source) {
            Ok(tree) => {
                let mut document = read_tree(&source, &tree, dialect);
                if self.id == "claude-code" {
                    projects(&source, &tree, dialect, &mut document);
                }
                document
            }
            Err(diagnosis) => broken(*diagnosis),
        };
        Found { source, document }
    }
}

/// Claude Code keeps servers for each project, too.
fn projects(source: &Arc<Source>, tree: &Node, dialect: Dialect, document: &mut Document) {
    for project in tree
        .get("projects")
        .and_then(Node::entries)
        .unwrap_or_default()
    {
        let inner = read_tree(source, &project.node, dialect);
        for mut server in inner.servers {
            if document
                .servers
                .iter()
                .any(|other| other.name == server.name)
            {
                continue;
            }
            if let Some(nexus_config::Transport::Stdio(stdio)) = &mut server.transport {
                stdio.cwd.get_or_insert(nexus_config::model::Text {
                    raw: project.key.clone(),
                    span: project.key_span.clone(),
                });
            }
            document.servers.push(server);
        }
        document.diagnoses.extend(inner.diagnoses);
    }
}

/// Whether a server is Nexus itself.
pub(crate) fn is_nexus(server: &Server) -> bool {
    let Some(nexus_config::Transport::Stdio(stdio)) = &server.transport else {
        return false;
    };
    let program = Path::new(&stdio.command.raw)
        .file_stem()
        .and_then(|name| name.to_str());
    program == Some("nexusctl") && stdio.args.first().is_some_and(|arg| arg.raw == "mcp")
}

/// How a file is written, by its name.
pub(crate) fn format(path: &Path) -> Format {
    Format::of(path)
}

fn locate(place: &str) -> Option<PathBuf> {
    let folder = |name: &str| {
        env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let home = || folder(if cfg!(windows) { "USERPROFILE" } else { "HOME" });
    let (first, rest) = place.split_once('/')?;
    let base = match first {
        "~" => home()?,
        "<cfg>" if cfg!(windows) => folder("APPDATA")?,
        "<cfg>" if cfg!(target_os = "macos") => home()?.join("Library/Application Support"),
        "<cfg>" => folder("XDG_CONFIG_HOME").or_else(|| Some(home()?.join(".config")))?,
        "%LOCALAPPDATA%" => folder("LOCALAPPDATA").filter(|_| cfg!(windows))?,
        _ => return None,
    };
    Some(base.join(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_agent_is_found_by_its_names() {
        for agent in ALL {
            assert_eq!(Agent::find(agent.id).map(|found| found.id), Some(agent.id));
            assert!(Agent::find(agent.name).is_some(), "{}", agent.name);
            assert!(agent.places.iter().all(|place| place.starts_with("~/")
                || place.starts_with("<cfg>/")
                || place.starts_with('%')));
        }
        assert!(
            Agent::find("gemini").unwrap().milliseconds
                && Agent::find("gemini").unwrap().bare_variables
        );
        assert!(
            Agent::find("opencode").unwrap().milliseconds
                && !Agent::find("opencode").unwrap().bare_variables
        );
        assert!(Agent::find("nobody").is_none());
    }
}
