/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* Search without a server, and the table of contents beside the text. */

var RESULTS = 12;

/* How well an entry of the index answers one word: 0 for not at all. */
function match(entry, word) {
    var title = entry.title.toLowerCase(), at = title.indexOf(word);
    if (title === word || title === word + "(" + entry.section + ")")
        return 100;
    if (title === "rpma_" + word)
        return 90;
    if (at === 0)
        return 60;
    if (at > 0)
        return /[a-z0-9]/.test(title.charAt(at - 1)) ? 30 : 50;
    if (entry.about.toLowerCase().indexOf(word) >= 0)
        return 20;
    return entry.words && entry.words.indexOf(" " + word) >= 0 ? 5 : 0;
}

/* The entries that have all words of the query, the best first. */
function find(index, query) {
    var words = query.toLowerCase().split(/[\s()]+/), found = [];
    words = words.filter(function (word) { return word !== ""; });
    index.forEach(function (entry, order) {
        var score = 0, every = words.length > 0;
        words.forEach(function (word) {
            var one = match(entry, word);
            every = every && one > 0;
            score += one;
        });
        if (every)
            found.push({entry: entry, order: order,
                        score: score + (entry.kind === "function" ? 5 : 0) - entry.title.length / 20});
    });
    found.sort(function (a, b) { return b.score - a.score || a.order - b.order; });
    return found.slice(0, RESULTS).map(function (each) { return each.entry; });
}

/* The box in the head of each page. */
function start(root) {
    var form = document.querySelector(".search"), input = form.querySelector("input");
    var list = document.getElementById("results"), chosen = -1, loading = false;

    function close() {
        list.hidden = true;
        chosen = -1;
        input.setAttribute("aria-expanded", "false");
        input.removeAttribute("aria-activedescendant");
    }

    function choose(number) {
        var options = list.querySelectorAll("a");
        if (options.length === 0)
            return;
        chosen = (number + options.length) % options.length;
        options.forEach(function (option, i) {
            option.setAttribute("aria-selected", String(i === chosen));
        });
        options[chosen].scrollIntoView({block: "nearest"});
        input.setAttribute("aria-activedescendant", options[chosen].id);
    }

    function part(kind, text) {
        var span = document.createElement("span");
        span.className = kind;
        span.textContent = text;
        return span;
    }

    function option(entry, i) {
        var link = document.createElement("a"), item = document.createElement("li");
        link.href = root + entry.url;
        link.id = "result-" + i;
        link.tabIndex = -1;
        link.setAttribute("role", "option");
        link.setAttribute("aria-selected", "false");
        link.appendChild(part("title", entry.title));
        link.appendChild(part("kind", entry.kind));
        link.appendChild(part("about", entry.about));
        item.setAttribute("role", "presentation");
        item.appendChild(link);
        return item;
    }

    function show() {
        var entries = find(window.SEARCH || [], input.value);
        close();
        list.textContent = "";
        if (input.value.trim() === "" || !window.SEARCH)
            return;
        entries.forEach(function (entry, i) { list.appendChild(option(entry, i)); });
        if (entries.length === 0)
            list.appendChild(part("nothing", "Nothing has all of these words."));
        list.hidden = false;
        input.setAttribute("aria-expanded", "true");
        if (entries.length > 0)
            choose(0);
    }

    /* The index is only read when somebody searches. */
    function load() {
        var script = document.createElement("script");
        if (loading)
            return;
        loading = true;
        script.src = root + "search-index.js";
        script.onload = show;
        document.head.appendChild(script);
    }

    function follow() {
        var link = list.querySelectorAll("a")[chosen];
        if (link)
            link.click();
    }

    form.hidden = false;
    input.addEventListener("focus", load);
    input.addEventListener("input", show);
    form.addEventListener("submit", function (event) { event.preventDefault(); follow(); });
    form.addEventListener("keydown", function (event) {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            choose(chosen + (event.key === "ArrowDown" ? 1 : -1));
            event.preventDefault();
        } else if (event.key === "Escape") {
            close();
            input.blur();
        }
    });
    list.addEventListener("click", function (event) {
        if (event.target.closest("a"))
            setTimeout(close, 0);
    });
    document.addEventListener("click", function (event) {
        if (!form.contains(event.target))
            close();
    });
    document.addEventListener("keydown", function (event) {
        if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
            input.focus();
            input.select();
            event.preventDefault();
        }
    });
}

/* Beside the text the table of contents is open; above it, it is not in the way. */
function openContents() {
    var contents = document.querySelector(".contents details");
    var wide = window.matchMedia("(min-width: 72rem)");
    function follow() { contents.open = wide.matches; }
    if (contents) {
        follow();
        wide.addEventListener("change", follow);
    }
}

if (typeof document !== "undefined") {
    start(document.body.getAttribute("data-root"));
    openContents();
}
