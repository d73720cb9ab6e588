//! Where configuration files are. Pure: the environment is asked for.

use crate::source::Layer;
use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

/// What a file of ours may be called, the later the stronger.
const OWN: &[&str] = &["nexus.yaml", "nexus.yml", "nexus.toml", "mcp.json"];

/// What a project may have, the later the stronger.
const PROJECT: &[&str] = &[
    ".mcp.json",
    ".nexus3/mcp.json",
    ".nexus/nexus.yaml",
    ".nexus/nexus.toml",
    ".nexus/mcp.json",
];

/// The folders that count.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// For everybody on this machine.
    pub system: Option<PathBuf>,
    /// The user's own.
    pub user: Option<PathBuf>,
    /// The user's home.
    pub home: Option<PathBuf>,
    /// Where things are kept that are to be known again next time.
    pub state: Option<PathBuf>,
}

impl Places {
    /// As the environment says.
    pub fn of(variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let folder = |name: &str| {
            variable(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
        };
        if cfg!(windows) {
            let nexus = |base: PathBuf| base.join("nexus");
            return Self {
                system: folder("PROGRAMDATA").map(nexus),
                user: folder("APPDATA").map(nexus),
                home: folder("USERPROFILE"),
                state: folder("LOCALAPPDATA").map(nexus),
            };
        }
        let home = folder("HOME");
        let base = |variable: &str, default: &str| {
            let base = folder(variable).or_else(|| Some(home.as_ref()?.join(default)));
            base.map(|base| base.join("nexus"))
        };
        Self {
            system: Some(PathBuf::from("/etc/nexus")),
            user: base("XDG_CONFIG_HOME", ".config"),
            state: base("XDG_STATE_HOME", ".local/state"),
            home,
        }
    }

    /// As our own environment says.
    pub fn ours() -> Self {
        Self::of(|name| std::env::var_os(name))
    }

    /// All files that count for everybody and for the user, the later the stronger.
    pub fn files(&self) -> Vec<(Layer, PathBuf)> {
        let own = |layer: Layer, folder: &Option<PathBuf>| {
            let folder = folder.clone();
            let paths = OWN
                .iter()
                .filter_map(move |name| Some(folder.as_ref()?.join(name)));
            paths.map(move |path| (layer, path))
        };
        let mut files: Vec<_> = own(Layer::System, &self.system).collect();
        files.extend(
            self.home
                .as_ref()
                .map(|home| (Layer::User, home.join(".nexus3/mcp.json"))),
        );
        files.extend(own(Layer::User, &self.user));
        files
    }

    /// The file that people are told to write.
    pub fn user_file(&self) -> Option<PathBuf> {
        self.user.as_ref().map(|folder| folder.join("mcp.json"))
    }

    /// Where it is kept which project files somebody has looked at.
    pub fn trust_file(&self) -> Option<PathBuf> {
        self.state.as_ref().map(|folder| folder.join("trust.json"))
    }

    /// All files that a project may have which is in this folder, ancestors first.
    pub fn project_files(&self, folder: &Path) -> Vec<PathBuf> {
        let mut folders: Vec<&Path> = folder.ancestors().collect();
        folders.reverse();
        let not_ours = self.files();
        let is_ours = |path: &PathBuf| not_ours.iter().any(|(_, other)| other == path);
        let all = folders
            .iter()
            .flat_map(|folder| PROJECT.iter().map(move |name| folder.join(name)));
        all.filter(|path| !is_ours(path)).collect()
    }
}

/// What the files of projects are sorted by: ancestors before what is in them, and in one folder the later the
/// stronger.
pub fn project_order(path: &Path) -> (usize, usize) {
    let folder = workspace_of(path).unwrap_or(path);
    let own = path.strip_prefix(folder).unwrap_or(path);
    let rank = PROJECT.iter().position(|name| own == Path::new(name));
    (folder.components().count(), rank.unwrap_or_default())
}

/// The folder of the project that a file belongs to.
pub fn workspace_of(path: &Path) -> Option<&Path> {
    let folder = path.parent()?;
    let name = folder.file_name().and_then(|name| name.to_str());
    match name {
        Some(
            ".nexus" | ".nexus3" | ".cursor" | ".vscode" | ".codex" | ".gemini" | ".roo" | ".zed",
        ) => folder.parent(),
        _ => Some(folder),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn places() -> Places {
        Places::of(|name| (name == "HOME").then(|| "/home/u".into()))
    }

    #[test]
    fn the_users_own_wins_over_the_systems() {
        let files: Vec<String> = places()
            .files()
            .into_iter()
            .map(|(layer, path)| format!("{layer} {}", path.display()))
            .collect();
        assert_eq!(files[0], "system /etc/nexus/nexus.yaml");
        assert_eq!(files[4], "user /home/u/.nexus3/mcp.json");
        assert_eq!(files.last().unwrap(), "user /home/u/.config/nexus/mcp.json");
    }

    #[test]
    fn the_nearest_folder_wins_and_in_it_our_own_file() {
        let mut files = [
            "/a/b/.mcp.json",
            "/a/.nexus/mcp.json",
            "/a/.nexus3/mcp.json",
            "/a/.mcp.json",
            "/a/.nexus/nexus.toml",
        ];
        files.sort_by_key(|path| project_order(Path::new(path)));
        let expected = [
            "/a/.mcp.json",
            "/a/.nexus3/mcp.json",
            "/a/.nexus/nexus.toml",
            "/a/.nexus/mcp.json",
            "/a/b/.mcp.json",
        ];
        assert_eq!(files, expected);
    }

    #[test]
    fn ancestors_come_first_and_the_home_has_no_project_of_ours() {
        let files = places().project_files(Path::new("/home/u/app"));
        assert!(!files.contains(&PathBuf::from("/home/u/.nexus3/mcp.json")));
        let at = |path: &str| {
            files
                .iter()
                .position(|file| file == Path::new(path))
                .unwrap()
        };
        assert!(at("/home/u/.mcp.json") < at("/home/u/app/.mcp.json"));
        assert!(at("/home/u/app/.mcp.json") < at("/home/u/app/.nexus/mcp.json"));
    }

    #[test]
    fn a_relative_folder_is_none() {
        let places = Places::of(|name| Some(if name == "HOME" { "/h" } else { "x" }.into()));
        assert_eq!(places.user.unwrap(), Path::new("/h/.config/nexus"));
    }

    #[test]
    fn a_file_in_a_folder_of_its_own_belongs_to_the_one_around() {
        assert_eq!(
            workspace_of(Path::new("/a/.nexus/mcp.json")),
            Some(Path::new("/a"))
        );
        assert_eq!(
            workspace_of(Path::new("/a/.mcp.json")),
            Some(Path::new("/a"))
        );
    }
}
