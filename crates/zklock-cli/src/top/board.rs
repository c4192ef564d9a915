//! What is shown: in which order, what of it is selected, and what keys change of that.

use std::cmp::Reverse;
use std::sync::Arc;

use clap::ValueEnum;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::widgets::TableState;

use crate::follow::shared::{Picture, View};

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Order {
    Waiters,
    Age,
    Path,
}

pub struct Board {
    pub path: String,
    pub hosts: String,
    pub order: Order,
    pub has_queue: bool,
    pub picture: Option<Arc<Picture>>,
    /// In their order.
    pub locks: Vec<Arc<View>>,
    pub table: TableState,
    /// How many locks the screen has room for.
    pub page: usize,
    /// The path that is selected: it stays so when others come and go.
    selected: Option<String>,
}

impl Board {
    pub fn new(path: String, hosts: String, order: Order) -> Board {
        Board {
            path,
            hosts,
            order,
            has_queue: true,
            picture: None,
            locks: Vec::new(),
            table: TableState::default(),
            page: 1,
            selected: None,
        }
    }

    pub fn update(&mut self, picture: Arc<Picture>) {
        if self.picture.as_ref().is_none_or(|shown| shown.version != picture.version) {
            self.locks.clone_from(&picture.locks);
            self.picture = Some(picture);
            self.sort();
        }
    }

    fn sort(&mut self) {
        match self.order {
            Order::Waiters => self.locks.sort_by_key(|lock| Reverse(lock.waiters())),
            // Those that nobody holds come last.
            Order::Age => {
                self.locks.sort_by_key(|lock| (lock.since().is_none(), lock.since()));
            }
            Order::Path => self.locks.sort_by(|a, b| a.found.path.cmp(&b.found.path)),
        }
        let place = |path: &String| self.locks.iter().position(|lock| lock.found.path == *path);
        let place = self.selected.as_ref().and_then(place);
        self.select(place.unwrap_or_else(|| self.table.selected().unwrap_or(0)));
    }

    fn select(&mut self, place: usize) {
        let place = place.min(self.locks.len().saturating_sub(1));
        self.selected = self.locks.get(place).map(|lock| lock.found.path.clone());
        self.table.select(self.selected.is_some().then_some(place));
    }

    pub fn selected(&self) -> Option<&View> {
        self.locks.get(self.table.selected()?).map(AsRef::as_ref)
    }

    fn sort_by(&mut self, order: Order) {
        self.order = order;
        if let Some(picture) = &self.picture {
            // By path first, so that equals stay in an order.
            self.locks.clone_from(&picture.locks);
        }
        self.sort();
    }

    /// Whether it goes on.
    pub fn press(&mut self, key: KeyEvent) -> bool {
        if key.kind == KeyEventKind::Release {
            return true;
        }
        let at = self.table.selected().unwrap_or(0);
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return false,
            KeyCode::Char('q') | KeyCode::Esc => return false,
            KeyCode::Char('w') => self.sort_by(Order::Waiters),
            KeyCode::Char('a') => self.sort_by(Order::Age),
            KeyCode::Char('p') => self.sort_by(Order::Path),
            KeyCode::Enter => self.has_queue = !self.has_queue,
            KeyCode::Up | KeyCode::Char('k') => self.select(at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.select(at + 1),
            KeyCode::PageUp => self.select(at.saturating_sub(self.page)),
            KeyCode::PageDown => self.select(at + self.page),
            KeyCode::Home => self.select(0),
            KeyCode::End => self.select(usize::MAX),
            _ => {}
        }
        true
    }
}
