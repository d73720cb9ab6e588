//! A server over HTTP, and requests written by hand.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::{PATIENCE, command, initialize_params, modern_meta};

pub(crate) struct Site {
    pub(crate) child: Child,
    pub(crate) port: u16,
}

impl Site {
    pub(crate) fn start(arguments: &[&str]) -> Site {
        let child = command(arguments)
            .args(["--http", "0"])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut site = Site { port: 0, child };
        let mut line = String::new();
        BufReader::new(site.child.stderr.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let port = line
            .strip_prefix("listening on http://127.0.0.1:")
            .and_then(|rest| rest.strip_suffix("/mcp\n"));
        site.port = port.unwrap_or_else(|| panic!("{line}")).parse().unwrap();
        site
    }

    pub(crate) fn open(&self, method: &str, headers: &[(&str, &str)], body: &str) -> Exchange {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut head =
            format!("{method} /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(request.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            match line.trim_end() {
                "" => break,
                line => lines.push(line.to_owned()),
            }
        }
        let status = lines[0].split(' ').nth(1).unwrap().parse().unwrap();
        Exchange {
            status,
            headers: lines[1..].to_vec(),
            reader,
        }
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> Exchange {
        let usual = [
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
        ];
        self.open(
            "POST",
            &[&usual[..], headers].concat(),
            &message.to_string(),
        )
    }

    /// A modern request with the headers it should have.
    pub(crate) fn modern(&self, method: &str, mut params: Value) -> Exchange {
        params["_meta"] = modern_meta();
        params["_meta"]["progressToken"] = json!(1);
        let name = params["name"]
            .as_str()
            .or(params["uri"].as_str())
            .unwrap_or_default()
            .to_owned();
        let headers = [
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("Mcp-Name", &name),
        ];
        self.post(
            &headers,
            &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        )
    }

    /// Begins a legacy session and returns its id.
    pub(crate) fn initialize(&self) -> String {
        let params = initialize_params("2025-11-25");
        let exchange = self.post(
            &[],
            &json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}),
        );
        assert_eq!(exchange.status, 200);
        let id = exchange.header("mcp-session-id").unwrap().to_owned();
        assert_eq!(exchange.json()["result"]["protocolVersion"], "2025-11-25");
        id
    }

    pub(crate) fn ask(&self, session: &str, method: &str, params: Value) -> Exchange {
        let headers = [
            ("Mcp-Session-Id", session),
            ("MCP-Protocol-Version", "2025-11-25"),
        ];
        self.post(
            &headers,
            &json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}),
        )
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) struct Exchange {
    pub(crate) status: u16,
    pub(crate) headers: Vec<String>,
    reader: BufReader<TcpStream>,
}

impl Exchange {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (key, value) = line.split_once(':')?;
            key.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    pub(crate) fn json(mut self) -> Value {
        let mut body = Vec::new();
        self.reader.read_to_end(&mut body).unwrap();
        serde_json::from_slice(&body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&body)))
    }

    /// All that is left, as it came.
    pub(crate) fn rest(mut self) -> String {
        let mut body = String::new();
        self.reader.read_to_string(&mut body).unwrap();
        body
    }

    /// The next event of a stream, or nothing at its end. Each event is a chunk, so its line is whole.
    pub(crate) fn event(&mut self) -> Option<Value> {
        assert_eq!(self.header("content-type"), Some("text/event-stream"));
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).unwrap() == 0 {
                return None;
            }
            if let Some(data) = line.strip_prefix("data: ") {
                return Some(serde_json::from_str(data).unwrap());
            }
        }
    }
}
