//! What only a server has that is reached over HTTP. Pure.

use super::{Fields, server::unknown};
use crate::{
    diagnosis::Diagnosis,
    keys,
    model::{Http, Setting, Text, Tls, TlsVersion},
    node::{Entry, Node, Value},
};

pub(super) fn tls(fields: &mut Fields<'_>, tls: &mut Tls, entry: &Entry) {
    let Some(inner) = entry.node.entries() else {
        // Some write `"tls": true` for what https says already.
        if entry.node.value != Value::Bool(true) && entry.node.value != Value::Null {
            let example = format!("\"{}\": {{\"ca\": \"~/ca.pem\"}}", entry.key);
            fields.wrong(&entry.key, &entry.node, "a map", &example);
        }
        return;
    };
    for entry in inner {
        match keys::find_in(keys::TLS, &entry.key).map(|key| key.name) {
            Some("ca") => tls.ca = fields.text(entry),
            Some("cert") => tls.cert = fields.text(entry),
            Some("key") => tls.key = fields.text(entry),
            Some("min_version") => {
                let version = fields.word(entry, TlsVersion::ALL, TlsVersion::as_str);
                tls.min_version = version.unwrap_or_default();
            }
            Some("verify") => verify(fields, tls, entry),
            _ => unknown(fields, keys::TLS, entry),
        }
    }
}

fn verify(fields: &mut Fields<'_>, tls: &mut Tls, entry: &Entry) {
    if fields.bool(entry) == Some(false) {
        tls.unverified = Some(entry.node.span.clone());
    }
}

/// As Continue writes it.
pub(super) fn request_options(fields: &mut Fields<'_>, http: &mut Http, node: &Node) {
    for entry in node.entries().unwrap_or_default() {
        match entry.key.as_str() {
            "headers" => http.headers.extend(fields.settings(entry)),
            "proxy" => http.proxy = fields.text(entry),
            "verifySsl" | "verify_ssl" => verify(fields, &mut http.tls, entry),
            "caBundlePath" | "ca_bundle_path" => {
                // One of several; the others would not be looked at.
                http.tls.ca = fields.texts(entry).into_iter().next();
            }
            "clientCertificate" | "client_certificate" => {
                for entry in entry.node.entries().unwrap_or_default() {
                    match entry.key.as_str() {
                        "cert" => http.tls.cert = fields.text(entry),
                        "key" => http.tls.key = fields.text(entry),
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
}

/// A name that stands for what the variable of that name says.
pub(super) fn variable(text: Text) -> Setting {
    Setting::Text(Text {
        raw: format!("${{{}}}", text.raw),
        span: text.span,
    })
}

/// What looks like an address, or may become one.
pub(super) fn check_url(fields: &mut Fields<'_>, url: &Text) {
    let is_url = ["http://", "https://", "$", "{"]
        .iter()
        .any(|start| url.raw.trim_start().to_lowercase().starts_with(start));
    if !is_url {
        fields.tell(
            Diagnosis::error("config::url", "its url is not one")
                .at(url.span.clone(), "expected http:// or https://")
                .fix("write \"url\": \"http://localhost:3000/mcp\""),
        );
    }
}
