//! Configuration without a daemon: a home of its own for each test.

use crate::support::{Run, nexusctl};
use serde_json::{Value, json};
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};
use tempfile::TempDir;

/// Appears in files, and nowhere else.
const CANARY: &str = "cAnArY-5f3b9e2a7c1d4086-sEcReT";

pub(crate) struct Home(TempDir);

impl Home {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Self(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    fn in_home(&self, mut command: Command) -> Command {
        for (name, folder) in [
            ("HOME", ""),
            ("USERPROFILE", ""),
            ("XDG_CONFIG_HOME", ".config"),
            ("XDG_STATE_HOME", ".state"),
            ("XDG_RUNTIME_DIR", "run"),
            ("APPDATA", ".config"),
            ("LOCALAPPDATA", ".state"),
        ] {
            command.env(name, self.path(folder));
        }
        for name in [
            "NEXUS_CONFIG",
            "CODEX_HOME",
            "OPENCODE_CONFIG",
            "COPILOT_HOME",
            "CLINE_MCP_SETTINGS_PATH",
        ] {
            command.env_remove(name);
        }
        command.current_dir(self.path("work"));
        command
    }

    fn run(&self, args: &[&str]) -> Run {
        let mut command = self.in_home(nexusctl());
        Run::of(command.args(args))
    }

    /// The same text on every machine.
    fn plain(&self, text: &str) -> String {
        text.replace(
            &self.0.path().canonicalize().unwrap().display().to_string(),
            "~",
        )
        .replace(&self.0.path().display().to_string(), "~")
    }
}

const USER: &str = ".config/nexus/mcp.json";

#[test]
fn a_good_file_is_said_to_be_good() {
    let home = Home::new();
    let file = home.write(
        "a.json",
        "{\"mcpServers\": {\"a\": {\"command\": \"x\"}}} // fine",
    );
    let out = home.run(&["config", "check", file.to_str().unwrap()]).ok();
    assert_eq!(home.plain(&out), "~/a.json: 1 server, good\n");
    assert_eq!(
        home.run(&["config", "check"]).ok(),
        "no configuration: 0 servers, good\n"
    );
}

#[test]
fn a_bad_file_is_shown_with_the_line_and_ends_with_1() {
    let home = Home::new();
    home.write(
        USER,
        "{\n  \"mcpServers\": {\n    \"github\": { \"command\": \"npx\" \"args\": [] }\n  }\n}\n",
    );
    let run = home.run(&["config", "check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!("check_syntax", home.plain(&run.stderr));
    let run = home.run(&["--json", "config", "check"]);
    assert_eq!(run.code, 1);
    let told: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(
        (
            &told["ok"],
            &told["diagnoses"][0]["line"],
            &told["diagnoses"][0]["layer"]
        ),
        (&json!(false), &json!(3), &json!("user"))
    );
}

#[test]
fn an_unset_variable_is_named() {
    let home = Home::new();
    home.write(USER, "{\n  \"mcpServers\": {\n    \"github\": {\n      \"command\": \"npx\",\n      \"env\": { \"GITHUB_TOKEN\": \"${NEXUS_TEST_UNSET}\" }\n    }\n  }\n}\n");
    let run = home.run(&["config", "check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!("check_unset", home.plain(&run.stderr));
}

#[test]
fn a_secret_that_cannot_be_had_is_told_and_programs_are_not_run() {
    let home = Home::new();
    let mark = home.path("ran");
    let config = json!({"mcpServers": {"a": {"command": "x", "env": {
        "A": "${file:~/no-such-file}", "B": {"cmd": ["touch", mark]}, "C": "${input:key}"
    }}}});
    home.write(USER, &config.to_string());
    let run = home.run(&["config", "check"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stderr.contains("there is no such file") && run.stderr.contains("VS Code"),
        "{}",
        run.stderr
    );
    assert!(!mark.exists());
}

#[cfg(unix)]
#[test]
fn a_file_that_others_can_write_is_not_believed() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = Home::new();
    let file = home.write(USER, "{\"mcpServers\": {}}");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    let run = home.run(&["config", "check"]);
    assert_eq!(run.code, 1);
    insta::assert_snapshot!("check_unsafe", home.plain(&run.stderr));
}

#[test]
fn later_layers_win_and_show_where_they_are() {
    let home = Home::new();
    home.write(
        ".nexus3/mcp.json",
        "{\"servers\": {\"a\": {\"command\": [\"old\"]}, \"b\": {\"command\": [\"b\"]}}}",
    );
    home.write(
        ".config/nexus/nexus.toml",
        "[mcp_servers.a]\ncommand = \"toml\"\n[mcp_servers.c]\ncommand = \"c\"\n",
    );
    home.write(
        USER,
        "{\"mcpServers\": {\n  \"a\": {\"command\": \"new\"},\n  \"b\": {\"disabled\": true}\n}}",
    );
    let shown = home.run(&["config", "show", "--offline"]).json();
    assert_eq!(shown["mcpServers"]["a"]["command"], "new");
    insta::assert_snapshot!(
        "show_origin",
        home.plain(&home.run(&["config", "show", "--origin"]).ok())
    );
    let path = home.plain(&home.run(&["config", "path"]).ok());
    let used: Vec<&str> = path.lines().filter(|line| line.contains("used")).collect();
    assert!(
        used[0].ends_with("~/.nexus3/mcp.json") && used[2].ends_with(USER),
        "{path}"
    );
}

#[test]
fn a_project_takes_part_when_it_is_trusted_and_as_long_as_it_is_the_same() {
    let home = Home::new();
    let file = home.write(
        "work/.mcp.json",
        "{\"mcpServers\": {\"p\": {\"command\": \"./run\", \"args\": [\"${workspaceFolder}\"]}}}",
    );
    let names = || {
        let shown = home.run(&["config", "show", "--offline"]).json();
        shown["mcpServers"]
            .as_object()
            .unwrap()
            .keys()
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(names(), [""; 0]);
    let run = home.run(&["config", "check"]);
    assert!(
        run.code == 0
            && run.stderr.contains("not trusted")
            && run.stderr.contains("nexusctl trust"),
        "{run:?}"
    );
    // Nobody can be asked here.
    assert_eq!(home.run(&["trust"]).code, 2);
    assert_eq!(names(), [""; 0]);
    let run = home.run(&["trust", "--yes"]);
    assert!(run.code == 0 && run.stderr.contains("p: ./run"), "{run:?}");
    assert_eq!(names(), ["p"]);
    assert!(home.run(&["trust", "--list"]).ok().contains("trusted"));
    assert!(
        home.run(&["config", "check"])
            .ok()
            .contains("1 server, good")
    );
    fs::write(
        &file,
        "{\"mcpServers\": {\"p\": {\"command\": \"./evil\"}}}",
    )
    .unwrap();
    assert_eq!(names(), [""; 0]);
    assert!(home.run(&["trust", "--list"]).ok().contains("changed"));
    assert!(
        home.run(&["config", "check"])
            .stderr
            .contains("has changed since")
    );
    home.run(&["trust", "--yes", "."]).ok();
    assert_eq!(names(), ["p"]);
    home.run(&["trust", "--remove", "."]).ok();
    assert_eq!(names(), [""; 0]);
    assert_eq!(home.run(&["trust", "--remove", "."]).code, 2);
}

/// What every agent would have, where it would have it.
fn agents(home: &Home) -> Vec<(&'static str, PathBuf, String)> {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/tests/files/agents");
    [
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "claude_desktop_config.json"),
        ("claude-code", ".claude.json", "claude.json"),
        ("cursor", ".cursor/mcp.json", "cursor.json"),
        ("vscode", ".config/Code/User/mcp.json", "vscode-mcp.json"),
        ("copilot", ".copilot/mcp-config.json", "copilot-mcp-config.json"),
        ("codex", ".codex/config.toml", "codex-config.toml"),
        ("gemini", ".gemini/settings.json", "gemini-settings.json"),
        ("antigravity", ".gemini/antigravity/mcp_config.json", "antigravity.json"),
        ("windsurf", ".codeium/windsurf/mcp_config.json", "windsurf.json"),
        ("zed", ".config/zed/settings.json", "zed-settings.json"),
        ("cline", ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json", "cline.json"),
        ("roo", ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/settings/mcp_settings.json", "roo.json"),
        ("continue", ".continue/config.yaml", "continue-config.yaml"),
        ("opencode", ".config/opencode/opencode.jsonc", "opencode.jsonc"),
        ("goose", ".config/goose/config.yaml", "goose-config.yaml"),
        ("lmstudio", ".lmstudio/mcp.json", "lmstudio.json"),
        ("kiro", ".kiro/settings/mcp.json", "kiro.json"),
        ("amp", ".config/amp/settings.json", "amp-settings.json"),
        ("vibe", ".vibe/config.toml", "vibe-config.toml"),
        // These write what others write.
        ("qwen", ".qwen/settings.json", "gemini-settings.json"),
        ("amazon-q", ".aws/amazonq/mcp.json", "kiro.json"),
        ("warp", ".warp/.mcp.json", "cursor.json"),
        ("kimi", ".kimi/mcp.json", "claude_desktop_config.json"),
        ("factory", ".factory/mcp.json", "cursor.json"),
        ("trae", ".config/Trae/User/mcp.json", "cursor.json"),
        ("junie", ".junie/mcp/mcp.json", "claude_desktop_config.json"),
        ("home-manager", ".config/mcp/mcp.json", "claude_desktop_config.json"),
    ]
    .map(|(agent, place, file)| {
        let text = fs::read_to_string(files.join(file)).unwrap();
        (agent, home.write(place, &text), text)
    })
    .to_vec()
}

#[cfg(target_os = "linux")]
#[test]
fn import_connect_and_undo_leave_every_file_as_it_was() {
    let home = Home::new();
    let agents = agents(&home);
    let listed = home.run(&["import"]).ok();
    // None is forgotten.
    let known = home.run(&["connect", "nobody-at-all-xyz"]).error(2);
    for agent in known
        .split("known are: ")
        .nth(1)
        .unwrap()
        .trim()
        .split(", ")
    {
        assert!(agents.iter().any(|(id, ..)| *id == agent), "{agent}");
    }
    for (agent, path, before) in &agents {
        assert!(listed.contains(agent), "{listed}");
        home.run(&["-q", "import", agent, "--yes"]).ok();
        assert_eq!(&fs::read_to_string(path).unwrap(), before, "{agent}");
        let dry = home.run(&["connect", agent, "--dry-run"]);
        assert!(
            dry.code == 0 && dry.stderr.contains("+ nexus"),
            "{agent}: {dry:?}"
        );
        assert_eq!(&fs::read_to_string(path).unwrap(), before, "{agent}");
        let run = home.run(&["connect", agent, "--yes"]);
        assert_eq!(run.code, 0, "{agent}: {run:?}");
        let after = fs::read_to_string(path).unwrap();
        assert!(
            after.contains("nexusctl") && after != *before,
            "{agent}: {after}"
        );
        assert!(
            home.run(&["connect"])
                .ok()
                .lines()
                .any(|line| line.starts_with(agent) && line.contains(" connected")),
            "{agent}"
        );
        // Once more changes nothing.
        assert!(
            home.run(&["connect", agent, "--yes"])
                .ok()
                .contains("already"),
            "{agent}: {after}"
        );
        home.run(&["connect", agent, "--undo"]).ok();
        assert_eq!(&fs::read_to_string(path).unwrap(), before, "{agent}");
    }
    assert_eq!(home.run(&["connect", "cursor", "--undo"]).code, 2);
    // What was imported is good, but for what only their owners can know.
    let told: Value =
        serde_json::from_str(&home.run(&["--json", "config", "check"]).stdout).unwrap();
    for diagnosis in told["diagnoses"].as_array().unwrap() {
        let code = diagnosis["code"].as_str().unwrap();
        assert!(
            matches!(
                code,
                "config::unset" | "config::expansion" | "config::secret" | "config::env-file"
            ),
            "{diagnosis}"
        );
    }
    let shown = home.run(&["config", "show", "--offline"]).json();
    assert!(
        shown["mcpServers"].as_object().unwrap().len() > 25,
        "{shown}"
    );
}

#[test]
fn a_file_that_has_changed_since_is_not_overwritten_by_undo() {
    let home = Home::new();
    home.write(".cursor/mcp.json", "{}");
    home.run(&["connect", "cursor", "--yes"]).ok();
    home.write(".cursor/mcp.json", "{\"mine\": 1}");
    let error = home.run(&["connect", "cursor", "--undo"]).error(2);
    assert!(
        error.contains("has changed since") && error.contains("--force"),
        "{error}"
    );
    assert_eq!(home.read(".cursor/mcp.json"), "{\"mine\": 1}");
    home.run(&["connect", "cursor", "--undo", "--force"]).ok();
    assert_eq!(home.read(".cursor/mcp.json"), "{}");
    // A file that was not there is not there again.
    home.run(&["connect", "kiro", "--yes"]).ok();
    assert!(home.path(".kiro/settings/mcp.json").exists());
    home.run(&["connect", "kiro", "--undo"]).ok();
    assert!(!home.path(".kiro/settings/mcp.json").exists());
}

#[test]
fn import_keeps_what_is_there_and_puts_it_aside_first() {
    let home = Home::new();
    let before = "{\n  // mine\n  \"mcpServers\": {\n    \"time\": { \"command\": \"uvx\" }, // keep\n  },\n}\n";
    home.write(USER, before);
    let other = home.write("other.json", "{\"mcpServers\": {\"time\": {\"command\": \"other\"}, \"new\": {\"command\": \"n\", \"env\": {\"A\": \"b\"}}}}");
    let from = other.to_str().unwrap();
    let run = home.run(&["import", from, "--yes"]);
    assert!(
        run.code == 0 && run.stderr.contains("another has that name"),
        "{run:?}"
    );
    let after = home.read(USER);
    assert!(
        after.contains("// mine")
            && after.contains("// keep")
            && after.contains("\"n\"")
            && !after.contains("other"),
        "{after}"
    );
    let backups: Vec<_> = fs::read_dir(home.path(".config/nexus"))
        .unwrap()
        .filter(|entry| {
            entry
                .as_ref()
                .unwrap()
                .file_name()
                .to_string_lossy()
                .ends_with(".bak")
        })
        .collect();
    assert_eq!(backups.len(), 1);
    assert_eq!(
        fs::read_to_string(backups[0].as_ref().unwrap().path()).unwrap(),
        before
    );
    home.run(&["import", from, "--yes", "--overwrite"]).ok();
    assert!(home.read(USER).contains("other"));
    assert_eq!(home.run(&["import", "nobody"]).code, 2);
}

#[test]
fn doctor_says_what_to_do() {
    let home = Home::new();
    home.write(USER, "{\"mcpServers\": {\n  \"a\": {\"command\": \"nexus-no-such-program\"},\n  \"b\": {\"comand\": \"x\", \"url\": \"http://localhost/mcp\"}\n}}");
    let run = home.run(&["doctor"]);
    assert_eq!(run.code, 1);
    let text = home.plain(&run.stdout);
    for part in [
        "nexus-no-such-program is not on the PATH",
        "hint: install",
        "did you mean \"command\"",
        "no daemon is running",
        "nexusctl service install",
        "2 things do not work",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run = home.run(&["--json", "doctor"]);
    assert_eq!(
        serde_json::from_str::<Value>(&run.stdout).unwrap()["ok"],
        false
    );
}

/// What an agent has over HTTP is brought here with all that it needs, and looked at by everything that looks.
#[test]
fn servers_over_http_are_imported_checked_and_warned_of() {
    let home = Home::new();
    let servers = json!({"mcpServers": {
        "docs": {"type": "http", "url": "https://docs.example.com/mcp", "headers": {"Authorization": "Bearer ${HOME}"}},
        "old": {"type": "sse", "url": "http://localhost:1/sse"},
    }});
    home.write(".cursor/mcp.json", &servers.to_string());
    home.run(&["import", "cursor", "--yes"]).ok();
    let run = home.run(&["config", "check"]).ok();
    assert!(run.contains("2 servers, good"), "{run}");
    let shown = home.run(&["config", "show", "--offline"]).ok();
    let shown: Value = serde_json::from_str(&shown).unwrap();
    let shown = &shown["mcpServers"];
    assert_eq!(shown["docs"]["url"], "https://docs.example.com/mcp");
    assert_eq!(shown["docs"]["headers"]["Authorization"], "***");
    assert_eq!(shown["old"]["type"], "sse");
    home.write(
        USER,
        r#"{"daemon": {"headers": {"X": "${NEXUS_TEST_UNSET}"}}, "mcpServers": {
            "a": {"url": "https://x.example/mcp", "tls": {"verify": false}},
            "b": {"url": "http://x.example:port/mcp"}
        }}"#,
    );
    let run = home.run(&["doctor"]);
    let text = home.plain(&run.stdout);
    for part in [
        "\"verify\" is false",
        "\"tls\": {\"ca\": ",
        "its \"url\" cannot be used",
        "NEXUS_TEST_UNSET",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let run = home.run(&["config", "check"]);
    assert_eq!(run.code, 1);
    assert!(run.stdout.contains("2 servers, 1 error"), "{}", run.stdout);
}

#[test]
fn no_secret_is_ever_shown() {
    let home = Home::new();
    let secret = home.write("secret", CANARY);
    let config = json!({"mcpServers": {
        "a": {"command": "sh", "args": ["--token", CANARY, format!("--api-key={CANARY}"), "x"], "env": {
            "A": CANARY, "B": {"file": secret}, "C": format!("${{NEXUS_TEST_UNSET}}{CANARY}"), "D": format!("${{X:-{CANARY}}}")
        }, "arg": [CANARY], "envFile": home.path("broken.env"), "cwd": 5, "timeout": {"x": CANARY}},
        "b": {"url": format!("https://u:{CANARY}@example.com/mcp?key={CANARY}"), "headers": {"Authorization": format!("Bearer {CANARY}"), "X": {"wrong": CANARY}},
            "bearer_token": CANARY, "proxy": format!("http://u:{CANARY}@proxy"), "tls": {"ca": 5, "verify": CANARY}},
        "e": {"url": "https://example.com/mcp", "bearer_token": format!("${{NEXUS_TEST_UNSET}}{CANARY}"), "tls": {"verify": false},
            "headers": {"Authorization": format!("Bearer {CANARY}\n")}},
        "c": {"command": "sh", "env": CANARY},
        "d": {"command": "sh", "args": ["-c", "x"], "env": {"T": CANARY}, "env_file": home.path("broken.env")}
    }});
    home.write("broken.env", &format!("A={CANARY}\n{CANARY}\n"));
    home.write("work/.mcp.json", &config.to_string());
    home.write(".cursor/mcp.json", &config.to_string());
    home.write(
        ".claude.json",
        &format!("{{\"mcpServers\": {{\"x\": {{\"env\": {{\"A\": \"{CANARY}\" \"B\"}}}}}}"),
    );
    for text in [
        serde_json::to_string_pretty(&config).unwrap(),
        config.to_string(),
    ] {
        home.write(USER, &text);
        for args in [
            &["config", "check"][..],
            &["--json", "config", "check"],
            &["config", "show", "--offline"],
            &["config", "show", "--origin"],
            &["--json", "config", "show", "--origin"],
            &["config", "path"],
            &["doctor"],
            &["--json", "doctor"],
            &["import"],
            &["import", "cursor", "--dry-run"],
            &["import", "claude-code", "--dry-run"],
            &["--json", "import", "cursor", "--dry-run"],
            &["trust", "--yes"],
            &["connect", "cursor", "--dry-run"],
            &["connect", "claude-code", "--dry-run"],
        ] {
            let run = home.run(args);
            assert!(
                !run.stdout.contains(&CANARY[..12]),
                "{args:?}: {}",
                run.stdout
            );
            assert!(
                !run.stderr.contains(&CANARY[..12]),
                "{args:?}: {}",
                run.stderr
            );
        }
    }
}
