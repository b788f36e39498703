//! A real browser without a screen, driven over a pipe by the Chrome DevTools Protocol: one page or several, real keys and clicks,
//! and everything that the pages ask for or complain about.
//!
//! The protocol is JSON with a zero byte behind each message, on the descriptors 3 and 4; a shell moves its own there, so that no
//! code has to run between fork and exec.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, SystemTime};

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::bounded::Deadline;
use crate::processes::kill_tree;
use crate::tools;

/// Nothing that a page does takes longer, unless the test says so.
const LIMIT: Duration = Duration::from_secs(180);

/// From one key to the next, by the clock of the events.
const BETWEEN_KEYS: Duration = Duration::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Screen {
    Desktop,
    /// 390 by 844, with a finger.
    Phone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Colours {
    Light,
    Dark,
}

/// A browser with one page, or with several in windows of their own.
#[derive(Debug)]
pub struct Browser {
    child: Child,
    orders: ChildStdin,
    heard: Receiver<Value>,
    events: VecDeque<Value>,
    /// Of the window that is driven.
    session: Option<String>,
    windows: Vec<String>,
    next: u64,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts one, with an empty profile and an empty page.
    pub fn start() -> io::Result<Self> {
        let profile = tempfile::Builder::new().prefix("alhena-browser-").tempdir()?;
        let mut command = Command::new("sh");
        command
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null"])
            .arg(tools::chromium()?)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().join("profile").display()))
            .arg("about:blank")
            .env("HOME", profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn()?;
        let gone = || io::Error::other("the browser has no pipes");
        let orders = child.stdin.take().ok_or_else(gone)?;
        let answers = child.stdout.take().ok_or_else(gone)?;
        let (tell, heard) = mpsc::channel();
        std::thread::spawn(move || {
            for message in BufReader::new(answers).split(0).map_while(Result::ok) {
                let Ok(message) = serde_json::from_slice(&message) else { continue };
                if tell.send(message).is_err() {
                    return;
                }
            }
        });
        let (events, session, windows) = (VecDeque::new(), None, Vec::new());
        let mut browser = Self { child, orders, heard, events, session, windows, next: 0, _profile: profile };
        browser.window()?;
        Ok(browser)
    }

    /// Opens another window, which is driven from now on, and gives its number; the first has 0.
    pub fn window(&mut self) -> io::Result<usize> {
        self.session = None;
        let target = self.call("Target.createTarget", json!({"url": "about:blank", "newWindow": true}))?;
        let attached = self.call(
            "Target.attachToTarget",
            json!({"targetId": part(&target, "/targetId"), "flatten": true}),
        )?;
        let session = part(&attached, "/sessionId").as_str().unwrap_or_default().to_owned();
        self.session = Some(session.clone());
        self.windows.push(session);
        for domain in ["Page", "Runtime", "Network", "Log"] {
            self.call(&format!("{domain}.enable"), json!({}))?;
        }
        // A page without a window believes that nobody looks at it.
        self.call("Emulation.setFocusEmulationEnabled", json!({"enabled": true}))?;
        self.screen(Screen::Desktop)?;
        Ok(self.windows.len() - 1)
    }

    pub fn turn_to(&mut self, window: usize) {
        self.session = self.windows.get(window).cloned();
    }

    /// One order and its answer.
    pub fn call(&mut self, method: &str, parameters: Value) -> io::Result<Value> {
        self.next += 1;
        let id = self.next;
        let mut order = json!({"id": id, "method": method, "params": parameters});
        if let (Some(session), Some(fields)) = (&self.session, order.as_object_mut()) {
            fields.insert("sessionId".to_owned(), json!(session));
        }
        let mut bytes = order.to_string().into_bytes();
        bytes.push(0);
        self.orders.write_all(&bytes)?;
        let deadline = Deadline::after(LIMIT);
        loop {
            let message = self
                .heard
                .recv_timeout(deadline.remaining())
                .map_err(|error| io::Error::other(format!("{method}: the browser is silent ({error})")))?;
            if *part(&message, "/id") != json!(id) {
                self.events.push_back(message);
                continue;
            }
            return match message.get("error") {
                Some(error) => Err(io::Error::other(format!("{method}: {error}"))),
                None => Ok(part(&message, "/result").clone()),
            };
        }
    }

    /// Goes to an address and waits until it is loaded.
    pub fn open(&mut self, address: &str) -> io::Result<()> {
        let gone = self.call("Page.navigate", json!({"url": address}))?;
        match part(&gone, "/errorText").as_str() {
            Some(error) => Err(io::Error::other(format!("{address}: {error}"))),
            None => self.wait_for("document.readyState === 'complete'"),
        }
    }

    /// What an expression is in the page; a promise is waited for.
    pub fn ask(&mut self, expression: &str) -> io::Result<Value> {
        let parameters = json!({"expression": expression, "returnByValue": true, "awaitPromise": true, "userGesture": true});
        let answer = self.call("Runtime.evaluate", parameters)?;
        match answer.get("exceptionDetails") {
            Some(details) => Err(io::Error::other(format!("{expression}: {details}"))),
            None => Ok(part(&answer, "/result/value").clone()),
        }
    }

    /// Waits until a condition holds in the page. Says what the page shows when it does not.
    pub fn wait_for(&mut self, condition: &str) -> io::Result<()> {
        let deadline = Deadline::after(LIMIT);
        loop {
            // A page that is just leaving has no answer.
            let holds = self.ask(&format!("Boolean({condition})")).unwrap_or_default();
            if holds == json!(true) {
                return Ok(());
            }
            if deadline.passed() {
                let shown = self.ask("location.href + '\\n' + document.body.innerText.slice(0, 4000)");
                let shown = shown.unwrap_or_default();
                return Err(io::Error::other(format!(
                    "not so: {condition}\n{}\n{:#?}",
                    shown.as_str().unwrap_or_default(),
                    self.complaints()
                )));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    /// Waits for an element that can be seen.
    pub fn wait_to_see(&mut self, selector: &str) -> io::Result<()> {
        self.wait_for(&format!("document.querySelector({})?.checkVisibility()", json!(selector)))
    }

    /// A click in the middle of an element, as a mouse makes it, once it can be clicked.
    pub fn click(&mut self, selector: &str) -> io::Result<()> {
        self.wait_to_see(selector)?;
        self.wait_for(&format!(
            "getComputedStyle(document.querySelector({})).pointerEvents !== 'none'",
            json!(selector)
        ))?;
        let place = self.ask(&format!(
            "(() => {{ const node = document.querySelector({}); node.scrollIntoView({{block: 'center', behavior: 'instant'}});
                const box = node.getBoundingClientRect(); return [box.x + box.width / 2, box.y + box.height / 2]; }})()",
            json!(selector)
        ))?;
        for kind in ["mousePressed", "mouseReleased"] {
            let event = json!({"type": kind, "x": part(&place, "/0"), "y": part(&place, "/1"), "button": "left", "clickCount": 1});
            self.call("Input.dispatchMouseEvent", event)?;
        }
        Ok(())
    }

    /// Keys, one after the other: a character, or a name such as `Enter`, `Tab`, `Control+Enter`.
    pub fn press(&mut self, keys: &[&str]) -> io::Result<()> {
        // As fast as fingers are: a page that counts the time between two keys must not see how busy the machine is.
        let mut at = SystemTime::UNIX_EPOCH.elapsed().map_err(io::Error::other)?;
        for key in keys {
            let (modifiers, name) = match key.split_once('+') {
                Some(("Control", name)) => (2, name),
                Some(("Shift", name)) => (8, name),
                _ => (0, *key),
            };
            let (code, text) = match name {
                "Enter" => (13, "\r"),
                "Tab" => (9, ""),
                "Escape" => (27, ""),
                " " => (32, " "),
                other if other.chars().count() == 1 => (0, other),
                _ => (0, ""),
            };
            let mut event = json!({"type": "keyDown", "key": name, "modifiers": modifiers, "windowsVirtualKeyCode": code, "timestamp": at.as_secs_f64()});
            if let Some(fields) = event.as_object_mut().filter(|_| !text.is_empty() && modifiers != 2) {
                fields.insert("text".to_owned(), json!(text));
            }
            self.call("Input.dispatchKeyEvent", event)?;
            let up = json!({"type": "keyUp", "key": name, "modifiers": modifiers, "windowsVirtualKeyCode": code, "timestamp": at.as_secs_f64()});
            self.call("Input.dispatchKeyEvent", up)?;
            at += BETWEEN_KEYS;
        }
        Ok(())
    }

    /// Types a text into what has the focus.
    pub fn type_text(&mut self, text: &str) -> io::Result<()> {
        self.call("Input.insertText", json!({"text": text})).map(drop)
    }

    /// Clicks into a field and types, in the place of what was there.
    pub fn fill(&mut self, selector: &str, text: &str) -> io::Result<()> {
        self.click(selector)?;
        self.ask(&format!("document.querySelector({}).select?.()", json!(selector)))?;
        self.type_text(text)
    }

    pub fn screen(&mut self, screen: Screen) -> io::Result<()> {
        let (width, height, phone) = match screen {
            Screen::Desktop => (1280, 800, false),
            Screen::Phone => (390, 844, true),
        };
        let size = json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone});
        self.call("Emulation.setDeviceMetricsOverride", size)?;
        self.call("Emulation.setTouchEmulationEnabled", json!({"enabled": phone})).map(drop)
    }

    pub fn colours(&mut self, colours: Colours) -> io::Result<()> {
        let value = if colours == Colours::Dark { "dark" } else { "light" };
        let features = json!({"features": [{"name": "prefers-color-scheme", "value": value}]});
        self.call("Emulation.setEmulatedMedia", features).map(drop)
    }

    pub fn screenshot(&mut self, path: &Path) -> io::Result<()> {
        // What was changed last has to be painted first.
        self.ask("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")?;
        let taken = self.call("Page.captureScreenshot", json!({"format": "png"}))?;
        let data = part(&taken, "/data").as_str().unwrap_or_default();
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::write(
            path,
            BASE64.decode(data.as_bytes()).map_err(|error| io::Error::other(error.to_string()))?,
        )
    }

    /// Every address that the page asked for, but for those of its own text.
    pub fn requested(&mut self) -> Vec<String> {
        let urls =
            self.told("Network.requestWillBeSent").map(|event| part(event, "/params/request/url").clone());
        urls.filter_map(|url| url.as_str().map(str::to_owned)).collect()
    }

    /// Dialogs, faults of scripts, and what the page's policy refused.
    pub fn complaints(&self) -> Vec<String> {
        let interesting = self.events.iter().filter(|event| {
            let refused = part(event, "/method") == "Log.entryAdded"
                && part(event, "/params/entry/source") == "security";
            refused
                || part(event, "/method") == "Page.javascriptDialogOpening"
                || part(event, "/method") == "Runtime.exceptionThrown"
        });
        interesting.map(ToString::to_string).collect()
    }

    fn told(&self, method: &str) -> impl Iterator<Item = &Value> {
        self.events.iter().filter(move |event| part(event, "/method") == method)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        kill_tree(self.child.id());
        let _gone = self.child.wait();
    }
}

/// What a message has at a place; nothing is null.
fn part<'a>(message: &'a Value, place: &str) -> &'a Value {
    message.pointer(place).unwrap_or(&Value::Null)
}
