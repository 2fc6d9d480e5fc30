// SPDX-License-Identifier: GPL-2.0-only
//! From bytes, wherever they come from, to frames.

use std::time::Instant;

use crate::exit::Failure;

use super::frame::{Frame, FrameError};

/// Brings the bytes of a stream.
pub trait Carrier: Send {
    /// Appends what has come to `buffer`, and waits until `deadline` if nothing has.
    ///
    /// # Errors
    /// When the stream cannot be read.
    fn more(&mut self, buffer: &mut Vec<u8>, deadline: Option<Instant>) -> Result<More, Failure>;
}

/// What a [`Carrier`] brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum More {
    /// Some bytes.
    Bytes,
    /// Nothing before the deadline.
    TimedOut,
    /// Nothing, and nothing will come.
    End,
}

impl More {
    /// `frame`, which is there if bytes are.
    fn or<'a>(
        self,
        frame: impl FnOnce() -> Result<Option<Frame<'a>>, FrameError>,
    ) -> Result<Next<'a>, Failure> {
        match self {
            Self::Bytes => {
                let frame = frame().map_err(anyhow::Error::from)?;
                Ok(frame.map_or(Next::End, Next::Frame))
            }
            Self::TimedOut => Ok(Next::TimedOut),
            Self::End => Ok(Next::End),
        }
    }
}

/// What comes next in a stream.
#[derive(Debug)]
pub enum Next<'a> {
    /// This.
    Frame(Frame<'a>),
    /// Nothing before the deadline.
    TimedOut,
    /// Nothing more.
    End,
}

/// A stream of frames.
pub struct Stream {
    carrier: Box<dyn Carrier>,
    buffer: Vec<u8>,
    /// What lies before has been taken.
    at: usize,
}

impl Stream {
    /// The stream that `carrier` brings.
    pub(super) fn new(carrier: impl Carrier + 'static) -> Self {
        Self { carrier: Box::new(carrier), buffer: Vec::new(), at: 0 }
    }

    /// The next frame; waits for it until `deadline`, or for ever. The end may come in the
    /// middle of a frame, which is then left out.
    ///
    /// # Errors
    /// When the stream cannot be read, or is damaged.
    pub fn next(&mut self, deadline: Option<Instant>) -> Result<Next<'_>, Failure> {
        self.fill(deadline)?.or(|| {
            let frame = Frame::split(&self.buffer[self.at..])?;
            Ok(frame.map(|(frame, _)| {
                self.at += frame.bytes.len();
                frame
            }))
        })
    }

    /// The next frame, which stays the next one.
    ///
    /// # Errors
    /// As of [`Stream::next`].
    pub(super) fn peek(&mut self, deadline: Option<Instant>) -> Result<Next<'_>, Failure> {
        let there = self.fill(deadline)?;
        there.or(|| Ok(Frame::split(&self.buffer[self.at..])?.map(|(frame, _)| frame)))
    }

    /// Sees to it that a whole frame is there ([`More::Bytes`]).
    fn fill(&mut self, deadline: Option<Instant>) -> Result<More, Failure> {
        loop {
            if Frame::split(&self.buffer[self.at..]).map_err(anyhow::Error::from)?.is_some() {
                return Ok(More::Bytes);
            }
            self.buffer.drain(..self.at);
            self.at = 0;
            match self.carrier.more(&mut self.buffer, deadline)? {
                More::Bytes => {}
                nothing => return Ok(nothing),
            }
        }
    }
}
