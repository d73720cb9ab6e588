//! What is connected to, with nothing left to be filled in.

use super::{Filling, Resolved};
use crate::{
    diagnosis::Diagnosis,
    endpoint::{Endpoint, Secret},
    model::{Http, Setting, Text},
    node::Span,
    secret,
};
use std::path::PathBuf;

/// What is connected to.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// Where.
    pub url: Endpoint,
    /// What is sent with every request.
    pub headers: Vec<(String, Secret)>,
    /// The token to show.
    pub bearer_token: Option<Secret>,
    /// Through which proxy it is reached.
    pub proxy: Option<Endpoint>,
    /// A file with certificates to trust.
    pub ca: Option<PathBuf>,
    /// A file with our own certificate.
    pub cert: Option<PathBuf>,
    /// A file with the key that belongs to it.
    pub key: Option<PathBuf>,
}

impl Filling<'_> {
    pub(super) fn http(&mut self, http: &Http) -> Option<Resolved> {
        let place = &http.url.span;
        let headers: Vec<_> = http
            .headers
            .iter()
            .filter_map(|(name, setting)| self.header(name, setting, place))
            .collect();
        let bearer_token = http.bearer_token.as_ref();
        let bearer_token = bearer_token
            .map(|token| self.header_value("bearer_token", token, place))
            .map(Secret::new);
        let url = self.endpoint(&http.url, "url");
        let proxy = http.proxy.as_ref();
        let proxy = proxy.map(|proxy| self.endpoint(proxy, "proxy"));
        let tls = &http.tls;
        let mut file = |file: &Option<Text>, key| file.as_ref().map(|file| self.file(file, key));
        let (ca, cert, key) = (
            file(&tls.ca, "ca"),
            file(&tls.cert, "cert"),
            file(&tls.key, "key"),
        );
        if cert.is_some() != key.is_some() {
            let message = "a certificate of our own needs both \"cert\" and \"key\"";
            let there = tls.cert.as_ref().or(tls.key.as_ref());
            let there = there.map_or(place.clone(), |text| text.span.clone());
            self.tell(Diagnosis::error("config::tls", message).at(there, "only this is there"));
        }
        if let Some(span) = &tls.unverified {
            self.tell(
                Diagnosis::warning(
                    "config::unverified",
                    "anybody on the way could answer in its place: \"verify\" is false",
                )
                .at(span.clone(), "this is for a try at most")
                .fix("name who has signed its certificate: \"tls\": {\"ca\": \"/path/to/ca.pem\"}"),
            );
        }
        Some(Resolved::Http(Box::new(Remote {
            url: url?,
            headers,
            bearer_token,
            proxy: proxy.flatten(),
            ca,
            cert,
            key,
        })))
    }

    fn endpoint(&mut self, text: &Text, key: &str) -> Option<Endpoint> {
        let before = self.diagnoses.len();
        let url = self.text(text, key, false);
        if self.diagnoses.len() > before {
            return None;
        }
        let endpoint = Endpoint::parse(&url);
        if let Err(error) = &endpoint {
            self.tell(
                Diagnosis::error(
                    "config::url",
                    format!("its {key:?} cannot be used: {error}"),
                )
                .at(text.span.clone(), "expected http:// or https://")
                .fix(format!("write \"{key}\": \"https://example.com/mcp\"")),
            );
        }
        endpoint.ok()
    }

    pub(super) fn header(
        &mut self,
        name: &str,
        setting: &Setting,
        place: &Span,
    ) -> Option<(String, Secret)> {
        let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
        if name.is_empty() || !name.bytes().all(is_token) {
            let message = format!("{name:?} cannot be the name of a header");
            self.tell(Diagnosis::error("config::header", message).at(place.clone(), "here"));
            return None;
        }
        let value = self.header_value(name, setting, place);
        Some((name.to_owned(), Secret::new(value)))
    }

    fn header_value(&mut self, name: &str, setting: &Setting, place: &Span) -> String {
        let value = self.setting(name, setting, false);
        if value.chars().any(|c| c.is_control() && c != '\t') {
            let place = match setting {
                Setting::Text(text) | Setting::File(text) | Setting::Keyring(text) => &text.span,
                Setting::Command(argv) => argv.first().map_or(place, |word| &word.span),
            };
            let message = format!("{name:?} has a line break in it, or the like");
            self.tell(
                Diagnosis::error("config::header", message).at(place.clone(), "no header may"),
            );
        }
        value
    }

    /// A file that is needed later.
    fn file(&mut self, file: &Text, key: &str) -> PathBuf {
        let before = self.diagnoses.len();
        let path = secret::place(&self.text(file, key, true), self.folder, self.home);
        if self.diagnoses.len() == before && !path.is_file() {
            let message = format!("there is no file {}", path.display());
            let diagnosis = Diagnosis::warning("config::tls", message);
            self.tell(diagnosis.at(file.span.clone(), format!("{key:?} needs it")));
        }
        path
    }
}
