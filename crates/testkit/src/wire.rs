//! A client of the PostgreSQL protocol that sends exactly the bytes it is told to, right or wrong.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longer than anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// One message of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub kind: u8,
    pub body: Vec<u8>,
}

impl Message {
    /// A field of an ErrorResponse or `NoticeResponse`, e.g. `C` for the SQLSTATE.
    #[must_use]
    pub fn field(&self, code: u8) -> Option<String> {
        let mut fields = self.body.split(|byte| *byte == 0);
        fields
            .find(|field| field.first() == Some(&code))
            .map(|field| String::from_utf8_lossy(&field[1..]).into_owned())
    }

    /// The values of a DataRow as text; NULL is `None`.
    #[must_use]
    pub fn values(&self) -> Vec<Option<Vec<u8>>> {
        let mut rest = &self.body[2..];
        let mut values = Vec::new();
        while let Some((length, after)) = rest.split_first_chunk::<4>() {
            let length = usize::try_from(i32::from_be_bytes(*length)).ok();
            let (value, after) = after.split_at(length.unwrap_or(0));
            values.push(length.map(|_| value.to_vec()));
            rest = after;
        }
        values
    }

    /// What a person would write down of it.
    #[must_use]
    pub fn summary(&self) -> String {
        match self.kind {
            b'1' => "ParseComplete".to_owned(),
            b'2' => "BindComplete".to_owned(),
            b'3' => "CloseComplete".to_owned(),
            b'C' => format!("tag {}", String::from_utf8_lossy(&self.body[..self.body.len() - 1])),
            b'D' => {
                let shown = |value: Option<Vec<u8>>| {
                    value.map_or_else(
                        || "NULL".to_owned(),
                        |value| String::from_utf8_lossy(&value).into_owned(),
                    )
                };
                format!("row {}", self.values().into_iter().map(shown).collect::<Vec<_>>().join("|"))
            }
            b'E' => {
                format!("{} {}", self.field(b'S').unwrap_or_default(), self.field(b'C').unwrap_or_default())
            }
            b'I' => "empty".to_owned(),
            b'N' => {
                format!("{} {}", self.field(b'S').unwrap_or_default(), self.field(b'M').unwrap_or_default())
            }
            b'T' => "RowDescription".to_owned(),
            b'Z' => format!("ready {}", char::from(self.body[0])),
            b'n' => "NoData".to_owned(),
            b's' => "suspended".to_owned(),
            b't' => "ParameterDescription".to_owned(),
            kind => format!("message {}", char::from(kind)),
        }
    }
}

/// One connection.
pub struct Wire {
    stream: TcpStream,
    /// What `BackendKeyData` said, for cancel requests.
    key: Vec<u8>,
}

impl Wire {
    /// A socket on which nothing has been said yet.
    pub fn open(address: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, key: Vec::new() })
    }

    /// A connection that is ready for queries.
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let mut wire = Self::open(address)?;
        wire.send_bytes(&startup(&[("user", "tester"), ("database", "highwater")]))?;
        for message in wire.until_ready()? {
            if message.kind == b'K' {
                wire.key = message.body;
            }
        }
        Ok(wire)
    }

    /// Bytes as they are.
    pub fn send_bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// A message with a true length.
    pub fn send(&mut self, kind: u8, body: &[u8]) -> io::Result<()> {
        self.send_bytes(&message(kind, body))
    }

    /// The next message; an error of kind `UnexpectedEof` when the server has closed the connection.
    pub fn receive(&mut self) -> io::Result<Message> {
        let mut head = [0; 5];
        self.stream.read_exact(&mut head)?;
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        let mut body = vec![0; length as usize - 4];
        self.stream.read_exact(&mut body)?;
        Ok(Message { kind: head[0], body })
    }

    /// All messages up to and with ReadyForQuery.
    pub fn until_ready(&mut self) -> io::Result<Vec<Message>> {
        let mut messages = Vec::new();
        loop {
            let message = self.receive()?;
            let is_last = message.kind == b'Z';
            messages.push(message);
            if is_last {
                return Ok(messages);
            }
        }
    }

    /// The summaries of the same.
    pub fn summaries(&mut self) -> io::Result<Vec<String>> {
        Ok(self.until_ready()?.iter().map(Message::summary).collect())
    }

    /// A text by the simple protocol, answered in summaries.
    pub fn query(&mut self, text: &str) -> io::Result<Vec<String>> {
        self.send(b'Q', &string(text))?;
        self.summaries()
    }

    /// Every message until the server closes the connection.
    pub fn until_closed(&mut self) -> Vec<Message> {
        std::iter::from_fn(|| self.receive().ok()).collect()
    }

    /// Asks the server, by a connection of its own, to cancel what runs on this one.
    pub fn cancel(&self) -> io::Result<()> {
        let mut request = vec![0, 0, 0, 0];
        request.extend(80_877_102u32.to_be_bytes());
        request.extend(&self.key);
        let length = u32::try_from(request.len()).unwrap_or(u32::MAX);
        request[..4].copy_from_slice(&length.to_be_bytes());
        let mut stream = TcpStream::connect(self.stream.peer_addr()?)?;
        stream.write_all(&request)?;
        // The server closes it when it has taken note.
        stream.read_to_end(&mut Vec::new()).map(drop)
    }
}

/// A message with a true length.
#[must_use]
pub fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend(u32::try_from(body.len() + 4).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// A start-up packet.
#[must_use]
pub fn startup(parameters: &[(&str, &str)]) -> Vec<u8> {
    let mut body = vec![0, 3, 0, 0];
    for (name, value) in parameters {
        body.extend(string(name));
        body.extend(string(value));
    }
    body.push(0);
    message(0, &body)[1..].to_vec()
}

/// A string of a message.
#[must_use]
pub fn string(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.push(0);
    bytes
}

/// The body of Parse.
#[must_use]
pub fn parse(name: &str, text: &str, types: &[u32]) -> Vec<u8> {
    let mut body = string(name);
    body.extend(string(text));
    body.extend(u16::try_from(types.len()).unwrap_or(u16::MAX).to_be_bytes());
    body.extend(types.iter().flat_map(|oid| oid.to_be_bytes()));
    body
}

/// The body of Bind, with all parameters and results in one format (0 text, 1 binary).
#[must_use]
pub fn bind(portal: &str, statement: &str, format: u16, values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = string(portal);
    body.extend(string(statement));
    body.extend([1u16, format].iter().flat_map(|number| number.to_be_bytes()));
    body.extend(u16::try_from(values.len()).unwrap_or(u16::MAX).to_be_bytes());
    for value in values {
        let length = value.map_or(-1, |value| i32::try_from(value.len()).unwrap_or(i32::MAX));
        body.extend(length.to_be_bytes());
        body.extend(value.unwrap_or_default());
    }
    body.extend([1u16, format].iter().flat_map(|number| number.to_be_bytes()));
    body
}

/// The body of Execute.
#[must_use]
pub fn execute(portal: &str, rows: i32) -> Vec<u8> {
    let mut body = string(portal);
    body.extend(rows.to_be_bytes());
    body
}
