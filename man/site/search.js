/* SPDX-License-Identifier: BSD-3-Clause */
/* Copyright 2026, the librpma developers */

/* Search without a server. */

var RESULTS = 12;

/* The rank of an entry of the index for one word; 0 if it does not match. */
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

/* The search box in the head of each page. */
function start(root) {
    var form = document.querySelector(".search"), input = form.querySelector("input");
    var list = document.getElementById("results");

    function show() {
        list.textContent = "";
        find(window.SEARCH || [], input.value).forEach(function (entry) {
            var link = document.createElement("a"), item = document.createElement("li");
            link.href = root + entry.url;
            link.textContent = entry.title;
            item.append(link, " (" + entry.kind + ") " + entry.about);
            list.append(item);
        });
        list.hidden = !list.firstChild;
    }

    /* The index is loaded at the first search. */
    function load() {
        var script = document.createElement("script");
        script.src = root + "search-index.js";
        script.onload = show;
        document.head.append(script);
    }

    form.hidden = false;
    input.addEventListener("focus", load, {once: true});
    input.addEventListener("input", show);
    form.addEventListener("submit", function (event) {
        event.preventDefault();
        if (list.firstChild)
            list.querySelector("a").click();
    });
    document.addEventListener("keydown", function (event) {
        if (event.key === "Escape")
            list.hidden = true;
        if (event.key === "/" && !/^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) {
            input.focus();
            event.preventDefault();
        }
    });
    document.addEventListener("click", function (event) {
        list.hidden = list.hidden || !form.contains(event.target);
    });
}

if (typeof document !== "undefined")
    start(document.body.getAttribute("data-root"));
