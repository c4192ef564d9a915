// Keeps the page as it is now: what has changed comes as HTML in which everything is escaped.
"use strict";

const main = document.querySelector("main");
let version = null;
let ahead = 0; // this clock's, of the server's, in milliseconds

function rough(milliseconds) {
  let seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const parts = [];
  for (const [name, length] of [["day", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    const number = Math.floor(seconds / length);
    seconds -= number * length;
    if (number > 0) parts.push(number + (name === "day" && number > 1 ? "days" : name));
  }
  return parts.slice(0, 2).join(" ") || "0s";
}

function tick() {
  for (const time of main.querySelectorAll("time")) {
    time.textContent = rough(Date.now() - ahead - Number(time.dataset.ms));
  }
}

function show(text) {
  const open = new Set([...main.querySelectorAll("details[open]")].map((queue) => queue.dataset.key));
  main.innerHTML = text;
  for (const queue of main.querySelectorAll("details")) queue.open = open.has(queue.dataset.key);
  ahead = Date.now() - Number(main.querySelector("header").dataset.now);
  tick();
}

async function ask() {
  try {
    const headers = version === null ? {} : { "If-None-Match": version };
    const reply = await fetch("/now" + location.search, { headers, cache: "no-store" });
    if (reply.status === 200) {
      show(await reply.text());
      version = reply.headers.get("ETag");
    }
    document.body.classList.toggle("old", reply.status !== 200 && reply.status !== 304);
  } catch {
    document.body.classList.add("old");
  }
  setTimeout(ask, document.hidden ? 10000 : 2000);
}

setInterval(tick, 1000);
ask();
