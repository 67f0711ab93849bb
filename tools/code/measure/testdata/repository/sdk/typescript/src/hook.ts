// Says whose.
const url = "https://what"; /* if
 * it stands */
const slash = /[/]what\//.test(url) ? `what ${`// what ${1 / 2}`} // what` : 4 / 2; // where
