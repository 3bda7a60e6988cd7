// Questions to the server. The token came as the fragment of the address, and is sent as a header.

const KEY = "statewise-token";

function ownToken() {
  const given = window.location.hash.slice(1);
  if (/^[\w-]{32}$/.test(given)) { // else it is a place on the page, such as that of the link that skips to the networks
    window.sessionStorage.setItem(KEY, given);
    window.history.replaceState(null, "", window.location.pathname); // no longer to be read over a shoulder
  }
  return window.sessionStorage.getItem(KEY) || "";
}

const token = ownToken();
const client = window.crypto.randomUUID();
const pause = (seconds) => new Promise((done) => window.setTimeout(done, 1000 * seconds));

export class Refused extends Error {
  constructor(status, error) {
    super(`${error.where}: got ${error.got}, wanted ${error.wanted}. ${error.remedy || ""}`.trim());
    this.status = status;
    this.error = error;
  }
}

export async function ask(question, fields = null, { signal = null, patience = 3 } = {}) {
  const headers = { "X-Statewise-Token": token, "X-Statewise-Client": client };
  if (fields) headers["Content-Type"] = "application/json";
  const answer = await fetch(`/api/${question}`, {
    method: fields ? "POST" : "GET", headers, signal, body: fields ? JSON.stringify(fields) : null,
    credentials: "omit", cache: "no-store", redirect: "error",
  });
  if ((answer.status === 429 || answer.status === 503) && patience > 0) {
    await pause(Number(answer.headers.get("Retry-After")) || 1);
    return ask(question, fields, { signal, patience: patience - 1 });
  }
  const told = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, told.error);
  return told;
}
