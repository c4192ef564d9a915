//! How it is drawn. Colours are the terminal's own, so it is readable on a dark and on a light one.

use std::time::SystemTime;

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style, Stylize};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, BorderType, Cell, Paragraph, Row, Table};

use super::board::{Board, Order};
use crate::follow::shared::{Picture, View, connection_name};
use crate::look::who;
use crate::text::{ago, cut, one_line};

/// Narrower screens do without some columns.
const WIDE: u16 = 100;
const MIDDLE: u16 = 64;
/// Between two columns.
const SPACING: u16 = 2;

pub fn draw(frame: &mut Frame, board: &mut Board) {
    let queue = board.selected().map_or(0, |lock| lock.contenders.len());
    let height = frame.area().height;
    // Never more than half of the screen.
    let pane = u16::try_from(queue + 3).unwrap_or(u16::MAX).min(height / 2);
    let pane = if board.has_queue && queue > 0 { pane } else { 0 };
    let rows = [Constraint::Length(1), Constraint::Min(3), Constraint::Length(pane)];
    let [head, locks, queue, foot] =
        Layout::vertical([rows[0], rows[1], rows[2], Constraint::Length(1)]).areas(frame.area());
    if let Some(picture) = board.picture.clone() {
        frame.render_widget(heading(board, &picture, head.width), head);
        frame.render_widget(footer(&picture, board.order), foot);
    }
    draw_locks(frame, board, locks);
    if pane > 0 {
        draw_queue(frame, board, queue);
    }
}

fn heading(board: &Board, picture: &Picture, width: u16) -> Line<'static> {
    let connection = connection_name(picture.connection);
    let connection = match picture.is_connected() {
        true => connection.green(),
        false => format!("{connection} {} ago", ago(picture.connection_since)).red().bold(),
    };
    let number = |number: usize, what: &str| Span::raw(format!("  {number} {what}"));
    let mut line = vec![
        one_line(&board.path).bold(),
        Span::raw("  "),
        connection,
        number(picture.held(), "held"),
        number(picture.waiting(), "waiting"),
    ];
    if !picture.is_complete {
        line.push(number(picture.unread, "znodes to read").yellow());
    }
    if picture.left_out > 0 {
        line.push(number(picture.left_out, "znodes left out: give a longer path").yellow());
    }
    if width >= WIDE {
        line.push(format!("  {}", one_line(&board.hosts)).dim());
    }
    Line::from(line)
}

/// The last error while it is new; the keys else.
fn footer(picture: &Picture, order: Order) -> Line<'static> {
    let is_new = |at: &SystemTime| at.elapsed().is_ok_and(|age| age.as_secs() < 5);
    if let Some((_, error)) = picture.error.as_ref().filter(|(at, _)| is_new(at)) {
        return Line::from(one_line(error).red());
    }
    let key = |key: &'static str, what: &'static str, is_on: bool| {
        let what = if is_on { what.underlined() } else { Span::raw(what) };
        [key.bold(), Span::raw(" "), what, Span::raw("  ")]
    };
    let keys = [
        key("w", "waiters", order == Order::Waiters),
        key("a", "age", order == Order::Age),
        key("p", "path", order == Order::Path),
        key("↑↓", "select", false),
        key("Enter", "queue", false),
        key("q", "quit", false),
    ];
    Line::from(keys.concat())
}

fn draw_locks(frame: &mut Frame, board: &mut Board, area: Rect) {
    board.page = usize::from(area.height.saturating_sub(1)).max(1);
    if board.locks.is_empty() {
        let is_complete = board.picture.as_ref().is_some_and(|picture| picture.is_complete);
        let text =
            if is_complete { "nobody holds a lock there, or waits for one" } else { "reading ..." };
        frame.render_widget(Paragraph::new(text).dim(), area);
        return;
    }
    let columns = columns(area.width);
    let heading = columns.iter().map(|column| Cell::from(column.title));
    // Only those that can be seen are made; the table scrolls by itself.
    let selected = board.table.selected().unwrap_or(0);
    let first = board.table.offset().min(selected).max((selected + 1).saturating_sub(board.page));
    *board.table.offset_mut() = first;
    let seen = first..first + board.page;
    let room = Layout::horizontal(columns.iter().map(|column| column.width)).spacing(SPACING);
    let room = room.split(area);
    let rows =
        board.locks.iter().enumerate().map(|(place, lock)| match seen.contains(&place) {
            true => Row::new(columns.iter().zip(room.iter()).map(|(column, room)| {
                Cell::from(cut(&(column.text)(lock), usize::from(room.width)))
            })),
            false => Row::default(),
        });
    let table = Table::new(rows, columns.iter().map(|column| column.width))
        .header(Row::new(heading).style(Style::new().add_modifier(Modifier::DIM)))
        .column_spacing(SPACING)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, &mut board.table);
}

struct Column {
    title: &'static str,
    width: Constraint,
    text: fn(&View) -> String,
}

fn columns(width: u16) -> Vec<Column> {
    let column = |title, width, text| Column { title, width, text };
    let mut columns = vec![
        column("PATH", Constraint::Fill(3), |lock| lock.found.path.escape_debug().to_string()),
        column("HOLDER", Constraint::Fill(4), holder),
        column("FOR", Constraint::Length(9), |lock| {
            lock.since().map_or_else(|| "-".to_owned(), ago)
        }),
        column("WAIT", Constraint::Length(5), |lock| lock.waiters().to_string()),
    ];
    if width >= MIDDLE {
        columns.insert(1, column("KIND", Constraint::Length(10), |lock| lock.found.kinds()));
    }
    if width >= WIDE {
        let libraries = |lock: &View| lock.found.libraries().join(", ");
        columns.push(column("LIBRARY", Constraint::Length(14), libraries));
    }
    columns
}

fn holder(lock: &View) -> String {
    who::among(lock.holders(), lock.holder())
}

fn draw_queue(frame: &mut Frame, board: &Board, area: Rect) {
    let Some(lock) = board.selected() else { return };
    let all = lock.contenders.len();
    let places = usize::from(area.height.saturating_sub(3));
    let title = match all > places {
        true => format!(" {} (first {places} of {all}) ", lock.found.path.escape_debug()),
        false => format!(" {} ", lock.found.path.escape_debug()),
    };
    let block = Block::bordered().border_type(BorderType::Rounded);
    let block = block.border_style(Style::new().fg(Color::DarkGray));
    let block = block.title(Span::styled(title, Style::reset().bold()));
    // As many columns of `who` as there is room for: those on the right are for few.
    let shown = match area.width {
        WIDE.. => 9,
        MIDDLE.. => 6,
        _ => 5,
    };
    let widths = [5, 1, 8, 2, 9, 10, 10, 17, 8].map(|width| match width {
        1 | 2 => Constraint::Fill(width),
        width => Constraint::Length(width),
    });
    let widths: Vec<Constraint> = widths.into_iter().take(shown).collect();
    let inside = block.inner(area);
    let columns = Layout::horizontal(widths.clone()).spacing(SPACING).split(inside);
    let rows = lock.contenders.iter().take(places).map(|contender| {
        let mut cells = who::row(contender);
        // It was seen when the hold began, which may be later than the claim was made.
        let hold = lock.holds.iter().find(|hold| hold.holder.token == contender.token);
        if let Some(hold) = hold {
            cells[4] = ago(hold.began);
        }
        let style = if hold.is_some() { Style::new().bold() } else { Style::new() };
        let cells = cells.iter().zip(columns.iter());
        Row::new(cells.map(|(cell, column)| cut(cell, usize::from(column.width)))).style(style)
    });
    let table = Table::new(rows, widths)
        .header(Row::new(who::HEADING.into_iter().take(shown)).dim())
        .column_spacing(SPACING)
        .block(block);
    frame.render_widget(table, area);
}
