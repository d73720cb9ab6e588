//! Requests that are answered by a status rather than by the core.

use hyper::header::{ALLOW, HeaderValue};
use hyper::{Response, StatusCode};

use super::body::{Body, json};
use crate::eras::Dialect;
use crate::reply::{RpcError, render};

/// A refusal, with a JSON-RPC error that says why.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    error: RpcError,
    /// The id of the refused request, as JSON text.
    id: String,
}

impl Refusal {
    /// Refuses before there is a request to name.
    pub(super) fn new(status: StatusCode, why: &str) -> Refusal {
        Refusal {
            status,
            error: RpcError::new(-32000, why),
            id: "null".to_owned(),
        }
    }

    /// 400 with an error of the protocol.
    pub(super) fn bad_request(id: &str, error: RpcError) -> Refusal {
        Refusal {
            status: StatusCode::BAD_REQUEST,
            error,
            id: id.to_owned(),
        }
    }

    pub(super) fn into_response(self) -> Response<Body> {
        let mut response = json(render(&self.id, Dialect::Legacy, "", &Err(self.error)));
        *response.status_mut() = self.status;
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response
    }
}
