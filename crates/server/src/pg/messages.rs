//! The message loop: whole, checked messages from the socket to their handlers.
//!
//! `pgwire` decodes leniently (bytes that are not UTF-8 become U+FFFD) and trusts the counts inside
//! of a message. So each message is cut out of the stream and checked here, then decoded alone:
//!
//! | wrong | answer, as PostgreSQL's |
//! |---|---|
//! | type or length | FATAL 08P01, the connection ends |
//! | longer than [`MESSAGE_BYTES_MAX`] | FATAL 54000, the connection ends |
//! | a string without end, a count that does not fit | ERROR 08P01 |
//! | text that is not UTF-8 | ERROR 22021 |

use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Buf, BytesMut};
use engine::Prepared;
use futures::{FutureExt, Sink, SinkExt};
use pgwire::api::{ClientInfo, NoopHandler, PgWireConnectionState};
use pgwire::error::{ErrorInfo, PgWireError};
use pgwire::messages::response::ReadyForQuery;
use pgwire::messages::{DecodeContext, PgWireBackendMessage, PgWireFrontendMessage};
use pgwire::tokio::server::{negotiate_tls, process_message};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until, timeout_at};

use super::Connection;
use super::error::{fatal, protocol_error};

/// How long a client may take until it has said who it is.
const STARTUP_TIMEOUT: Duration = Duration::from_secs(60);
/// The same for a client that is only told to come back.
const REFUSAL_TIMEOUT: Duration = Duration::from_secs(5);
/// A start-up packet is short; nobody has been let in yet.
const STARTUP_BYTES_MAX: usize = 10_000;
/// Longer statements and values are refused before they are in memory.
const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// What a client may send once it has been let in, COPY's messages included, which are ignored.
const KNOWN_TYPES: &[u8] = b"QPBEDCHSXdcf";

/// Reads and answers messages until the client leaves, is thrown out, or the server stops.
pub(super) async fn serve_messages(
    stream: TcpStream,
    connection: &Arc<Connection>,
    mut stopped: watch::Receiver<bool>,
) -> io::Result<()> {
    let deadline = Instant::now() + STARTUP_TIMEOUT;
    let negotiated = timeout_at(deadline, negotiate_tls::<Prepared>(stream, None)).await;
    let Ok(Some(mut socket)) = negotiated.unwrap_or(Ok(None)) else {
        return Ok(());
    };
    let mut buffer = std::mem::take(socket.read_buffer_mut());
    loop {
        let is_starting = is_starting(&socket);
        let idle = connection.idle_limit().await;
        let received = tokio::select! {
            received = receive(socket.get_mut(), &mut buffer, is_starting) => received,
            () = sleep_until(deadline), if is_starting => return Ok(()),
            error = idle.passed() => Err(error),
            _ = stopped.changed() => Err(stopping()),
        };
        let message = match received {
            Ok(Some(message)) => message,
            Ok(None) => return Ok(()),
            Err(error) => {
                answer_error(&mut socket, connection, error, false).await?;
                return Ok(());
            }
        };
        let kind = if is_starting { 0 } else { message[0] };
        if kind == b'X' {
            return Ok(());
        }
        let is_skipped = matches!(socket.state(), PgWireConnectionState::AwaitingSync) && kind != b'S';
        if is_skipped || matches!(kind, b'd' | b'c' | b'f') {
            continue;
        }
        let handled = match decode(message, is_starting, &socket) {
            Ok(message) => {
                let is_cancel_request = matches!(message, PgWireFrontendMessage::CancelRequest(_));
                let handled = process_message(
                    message,
                    &mut socket,
                    Arc::clone(connection),
                    Arc::clone(connection),
                    Arc::clone(connection),
                    Arc::new(NoopHandler),
                    Arc::clone(&connection.cancellations),
                );
                let handled = tokio::select! {
                    handled = AssertUnwindSafe(Box::pin(handled)).catch_unwind() => handled,
                    _ = stopped.changed() => Ok(Err(stopping())),
                };
                if is_cancel_request {
                    return Ok(());
                }
                handled.unwrap_or_else(|_| Err(fatal("XX000", "internal error: a message handler panicked")))
            }
            Err(error) => Err(error),
        };
        if let Err(error) = handled {
            connection.fail_transaction().await;
            let is_extended = !matches!(kind, 0 | b'Q');
            let goes_on = answer_error(&mut socket, connection, error, is_extended).await?;
            if !goes_on {
                return Ok(());
            }
        }
    }
}

/// Tells a client that there are too many already.
pub(crate) async fn refuse_connection(stream: TcpStream) -> io::Result<()> {
    let deadline = Instant::now() + REFUSAL_TIMEOUT;
    let negotiated = timeout_at(deadline, negotiate_tls::<Prepared>(stream, None)).await;
    let Ok(Some(mut socket)) = negotiated.unwrap_or(Ok(None)) else {
        return Ok(());
    };
    let info: ErrorInfo = fatal("53300", "sorry, too many clients already").into();
    let sent = socket.send(PgWireBackendMessage::ErrorResponse(info.into()));
    timeout_at(deadline, sent).await.unwrap_or(Ok(()))
}

fn is_starting(client: &impl ClientInfo) -> bool {
    matches!(
        client.state(),
        PgWireConnectionState::AwaitingSslRequest
            | PgWireConnectionState::AwaitingStartup
            | PgWireConnectionState::AuthenticationInProgress
    )
}

fn stopping() -> PgWireError {
    fatal("57P01", "terminating connection due to administrator command")
}

/// Tells the client what was wrong; `false`: the connection is to end.
async fn answer_error<C>(
    client: &mut C,
    connection: &Connection,
    error: PgWireError,
    is_extended: bool,
) -> io::Result<bool>
where
    C: ClientInfo + Sink<PgWireBackendMessage, Error = io::Error> + Unpin + Send,
{
    // The client is gone: nobody is there to be told.
    if matches!(error, PgWireError::IoError(_)) {
        return Ok(false);
    }
    let mut info: ErrorInfo = error.into();
    if is_starting(client) {
        "FATAL".clone_into(&mut info.severity);
        info.severity_nonlocalized = Some("FATAL".to_owned());
    }
    let is_fatal = info.is_fatal();
    client.feed(PgWireBackendMessage::ErrorResponse(info.into())).await?;
    if !is_fatal && is_extended {
        client.set_state(PgWireConnectionState::AwaitingSync);
    } else if !is_fatal {
        let status = connection.transaction_status().await;
        client.set_state(PgWireConnectionState::ReadyForQuery);
        client.set_transaction_status(status);
        client.feed(PgWireBackendMessage::ReadyForQuery(ReadyForQuery::new(status))).await?;
    }
    client.flush().await?;
    Ok(!is_fatal)
}

/// The next whole message; `None` when the client has left.
async fn receive(
    stream: &mut (impl AsyncRead + Unpin),
    buffer: &mut BytesMut,
    is_starting: bool,
) -> Result<Option<BytesMut>, PgWireError> {
    loop {
        if let Some(length) = message_length(buffer, is_starting)?
            && buffer.len() >= length
        {
            return Ok(Some(buffer.split_to(length)));
        }
        if stream.read_buf(buffer).await? == 0 {
            return Ok(None);
        }
    }
}

/// The length of the message that begins here, its head included; `None`: not known yet.
fn message_length(buffer: &[u8], is_starting: bool) -> Result<Option<usize>, PgWireError> {
    let mut head = buffer;
    if !is_starting {
        let Some((kind, rest)) = buffer.split_first() else { return Ok(None) };
        if !KNOWN_TYPES.contains(kind) {
            return Err(fatal("08P01", &format!("invalid frontend message type {kind}")));
        }
        head = rest;
    }
    let Some(length) = head.first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(i32::from_be_bytes(*length)).unwrap_or(0);
    if is_starting && !(8..=STARTUP_BYTES_MAX).contains(&length) {
        return Err(fatal("08P01", "invalid length of startup packet"));
    }
    if length < 4 {
        return Err(fatal("08P01", "invalid message length"));
    }
    if length > MESSAGE_BYTES_MAX {
        let message = format!("a message of {length} bytes is longer than the limit of {MESSAGE_BYTES_MAX}");
        return Err(fatal("54000", &message));
    }
    Ok(Some(length + usize::from(!is_starting)))
}

fn decode(
    mut message: BytesMut,
    is_starting: bool,
    client: &impl ClientInfo,
) -> Result<PgWireFrontendMessage, PgWireError> {
    if !is_starting {
        check(message[0], &message[5..])?;
    }
    let mut context = DecodeContext::new(client.protocol_version());
    context.awaiting_frontend_ssl = false;
    context.awaiting_frontend_startup = is_starting;
    PgWireFrontendMessage::decode(&mut message, &context)?
        .ok_or_else(|| protocol_error("08P01", "invalid message format".to_owned()))
}

/// Checks what [`PgWireFrontendMessage::decode`] relies on.
fn check(kind: u8, body: &[u8]) -> Result<(), PgWireError> {
    let mut body = Body(body);
    match kind {
        b'Q' => body.text()?,
        b'P' => {
            body.text()?;
            body.text()?;
            let types = body.count()?;
            body.skip(types * 4)?;
        }
        b'B' => {
            body.text()?;
            body.text()?;
            let formats = body.count()?;
            body.skip(formats * 2)?;
            for _ in 0..body.count()? {
                // A negative length is NULL.
                let length = body.length()?;
                body.skip(usize::try_from(length).unwrap_or(0))?;
            }
            let formats = body.count()?;
            body.skip(formats * 2)?;
        }
        b'E' => {
            body.text()?;
            body.skip(4)?;
        }
        b'D' | b'C' => {
            body.skip(1)?;
            body.text()?;
        }
        _ => {}
    }
    body.end()
}

/// What is left of a message's body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    /// A string up to its zero byte.
    fn text(&mut self) -> Result<(), PgWireError> {
        let Some(end) = self.0.iter().position(|byte| *byte == 0) else {
            return Err(protocol_error("08P01", "invalid string in message".to_owned()));
        };
        let checked = std::str::from_utf8(&self.0[..end]);
        if let Err(error) = checked {
            let start = error.valid_up_to();
            let length = error.error_len().unwrap_or(end - start);
            let bytes: Vec<String> =
                self.0[start..start + length].iter().map(|byte| format!("0x{byte:02x}")).collect();
            let message = format!("invalid byte sequence for encoding \"UTF8\": {}", bytes.join(" "));
            return Err(protocol_error("22021", message));
        }
        self.0.advance(end + 1);
        Ok(())
    }

    fn count(&mut self) -> Result<usize, PgWireError> {
        self.need(2)?;
        Ok(usize::from(self.0.get_u16()))
    }

    fn length(&mut self) -> Result<i32, PgWireError> {
        self.need(4)?;
        Ok(self.0.get_i32())
    }

    fn skip(&mut self, bytes: usize) -> Result<(), PgWireError> {
        self.need(bytes)?;
        self.0.advance(bytes);
        Ok(())
    }

    fn need(&self, bytes: usize) -> Result<(), PgWireError> {
        if self.0.len() < bytes {
            return Err(protocol_error("08P01", "insufficient data left in message".to_owned()));
        }
        Ok(())
    }

    fn end(&self) -> Result<(), PgWireError> {
        if self.0.is_empty() {
            Ok(())
        } else {
            Err(protocol_error("08P01", "invalid message format".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(kind: u8, body: &[u8]) -> String {
        check(kind, body).map_or_else(|error| error.code().to_owned(), |()| "00000".to_owned())
    }

    #[test]
    fn text_must_be_utf8_and_end() {
        assert_eq!(code(b'Q', b"SELECT 1\0"), "00000");
        assert_eq!(code(b'Q', b"SELECT 1"), "08P01");
        assert_eq!(code(b'Q', b"SELECT '\xff'\0"), "22021");
        assert_eq!(code(b'Q', b"SELECT 1\0 --\0"), "08P01");
    }

    #[test]
    fn counts_must_fit() {
        assert_eq!(code(b'P', b"\0SELECT 1\0\0\x01\0\0\0\x17"), "00000");
        assert_eq!(code(b'P', b"\0SELECT 1\0\xff\xff"), "08P01");
        assert_eq!(code(b'B', b"\0\0\0\0\0\x01\xff\xff\xff\xff\0\0"), "00000");
        assert_eq!(code(b'B', b"\0\0\0\0\0\x01\x7f\xff\xff\xff\0\0"), "08P01");
        assert_eq!(code(b'E', b"\0\0"), "08P01");
        assert_eq!(code(b'D', b""), "08P01");
    }

    #[test]
    fn lengths_that_lie_are_fatal() {
        let fatal = |buffer: &[u8], is_starting| {
            message_length(buffer, is_starting).is_err_and(|error| error.is_fatal())
        };
        assert!(fatal(b"Q\0\0\0\x03", false));
        assert!(fatal(b"Q\xff\xff\xff\xff", false));
        assert!(fatal(b"Q\x7f\xff\xff\xff", false));
        assert!(fatal(b"!", false));
        assert!(fatal(b"\0\0\0\x07", true));
        assert!(fatal(b"GET ", true));
        assert_eq!(message_length(b"Q\0\0\0\x08", false).unwrap(), Some(9));
        assert_eq!(message_length(b"Q\0\0", false).unwrap(), None);
    }
}
