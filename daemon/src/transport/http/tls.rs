//! Who is spoken to over TLS, and how that is made sure.

use super::spec::{TlsSpec, TlsVersion};
use rustls::{
    ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme,
    client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
    crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature},
    pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime, pem::PemObject as _},
    version::{TLS12, TLS13},
};
use std::{
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
};

/// Why a file that TLS needs cannot be used.
#[derive(Debug, thiserror::Error)]
pub(super) enum TlsError {
    /// It cannot be read, or is not PEM.
    #[error("{what} {} cannot be used: {why}", path.display())]
    File {
        /// What it was to be.
        what: &'static str,
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The parts do not fit together.
    #[error("the TLS settings cannot be used: {0}")]
    Rustls(#[from] rustls::Error),
}

static SYSTEM: LazyLock<Arc<RootCertStore>> = LazyLock::new(|| {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    Arc::new(roots)
});

/// What a connection begins with. Reads files.
pub(super) fn config(spec: &TlsSpec) -> Result<ClientConfig, TlsError> {
    let provider = Arc::new(ring::default_provider());
    let versions: &[_] = match spec.min_version {
        TlsVersion::V1_2 => &[&TLS13, &TLS12],
        TlsVersion::V1_3 => &[&TLS13],
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider));
    let builder = builder.with_protocol_versions(versions)?;
    let builder = if spec.verify {
        let mut roots = Arc::clone(&SYSTEM);
        if let Some(path) = &spec.ca {
            let own = Arc::make_mut(&mut roots);
            for certificate in certificates("the certificate of an authority", path)? {
                own.add(certificate)?;
            }
        }
        builder.with_root_certificates(roots)
    } else {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anybody(provider)))
    };
    let mut config = match &spec.own {
        None => builder.with_no_client_auth(),
        Some((cert, key)) => {
            let chain = certificates("the certificate", cert)?;
            let key =
                PrivateKeyDer::from_pem_file(key).map_err(|error| wrong("the key", key, &error))?;
            builder.with_client_auth_cert(chain, key)?
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(config)
}

fn certificates(what: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all = CertificateDer::pem_file_iter(path).map_err(|error| wrong(what, path, &error))?;
    let all: Result<Vec<_>, _> = all.collect();
    let all = all.map_err(|error| wrong(what, path, &error))?;
    if all.is_empty() {
        return Err(wrong(what, path, &"there is none in it"));
    }
    Ok(all)
}

fn wrong(what: &'static str, path: &Path, why: &dyn std::fmt::Display) -> TlsError {
    TlsError::File {
        what,
        path: path.to_owned(),
        why: why.to_string(),
    }
}

/// Takes anybody's word for who they are: only where the operator has written so.
#[derive(Debug)]
struct Anybody(Arc<CryptoProvider>);

impl ServerCertVerifier for Anybody {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(
            message,
            cert,
            dss,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
