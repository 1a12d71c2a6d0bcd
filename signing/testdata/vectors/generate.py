#!/usr/bin/env python3
"""Makes vectors.json: requests with the verdict that a receiver must come to.

It uses Python's standard library alone and none of the Go code beside it, so that the
two can be wrong only independently. Ed25519 is written out below as in RFC 8032
section 6, since that library has none. Run it in this folder:

    python3 generate.py > vectors.json
"""

import base64
import datetime
import hashlib
import hmac
import json
import urllib.parse

NOW = 1_700_000_000
TEXT = "9f86d081884c7d659a2feaa0c55ad015"
OTHER = "60303ae22b998861bce3b28f33eec1be"
ID = "evt_0123456789abcdefghijklmn"
SQUARE_URL = "https://example.com/webhooks/square"
TWILIO_URL = "https://example.com/sms?tenant=7"


# Ed25519, RFC 8032 section 6, for signing alone and without care for time.
P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P


def recover_x(y, sign):
    x2 = (y * y - 1) * pow(D * y * y + 1, P - 2, P)
    x = pow(x2, (P + 3) // 8, P)
    if (x * x - x2) % P != 0:
        x = x * pow(2, (P - 1) // 4, P) % P
    return P - x if x & 1 != sign else x


BASE_Y = 4 * pow(5, P - 2, P) % P
BASE_X = recover_x(BASE_Y, 0)
BASE = (BASE_X, BASE_Y, 1, BASE_X * BASE_Y % P)


def add(p, q):
    a, b = (p[1] - p[0]) * (q[1] - q[0]) % P, (p[1] + p[0]) * (q[1] + q[0]) % P
    c, d = 2 * p[3] * q[3] * D % P, 2 * p[2] * q[2] % P
    e, f, g, h = b - a, d - c, d + c, b + a
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def multiply(s, p):
    q = (0, 1, 1, 0)
    while s > 0:
        if s & 1:
            q = add(q, p)
        p = add(p, p)
        s >>= 1
    return q


def compress(p):
    z = pow(p[2], P - 2, P)
    x, y = p[0] * z % P, p[1] * z % P
    return (y | ((x & 1) << 255)).to_bytes(32, "little")


def expand(seed):
    h = hashlib.sha512(seed).digest()
    a = int.from_bytes(h[:32], "little")
    return (a & ((1 << 254) - 8)) | (1 << 254), h[32:]


def ed25519_public(seed):
    return compress(multiply(expand(seed)[0], BASE))


def ed25519(seed, message):
    a, prefix = expand(seed)
    public = compress(multiply(a, BASE))
    r = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % L
    big_r = compress(multiply(r, BASE))
    h = int.from_bytes(hashlib.sha512(big_r + public + message).digest(), "little") % L
    return big_r + ((r + h * a) % L).to_bytes(32, "little")


assert ed25519(
    bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"), b""
).hex().startswith("e5564300c360ac729086e2cc806e828a"), "RFC 8032 section 7.1, test 1"


# The parts that the schemes have in common.
def mac(key, message, algorithm="sha256"):
    return hmac.new(key, message, algorithm).digest()


def b64(raw):
    return base64.b64encode(raw).decode()


def text_key(text):
    return {"form": "text", "value": text}


def whsec(text):
    return {"form": "whsec", "value": "whsec_" + b64(text.encode())}


def public_key(text):
    return {"form": "ed25519-hex", "value": ed25519_public(text.encode()).hex()}


def iso(t):
    return datetime.datetime.fromtimestamp(t, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


class Scheme:
    """One scheme. raw(text, stamp, body) is the signature's bytes under a key's text, and
    headers(signatures, stamp) the headers with the signatures as they are written."""

    def __init__(self, name, header, raw, encode, headers, stamp=str, key=text_key, size=32, timed=True, listed=False, tolerance=300, stamp_in=None, body=b'{"id":"evt_1","type":"subscriber.updated"}', url=None, ids=False):
        self.name, self.header, self.raw, self.encode, self.headers = name, header, raw, encode, headers
        self.stamp, self.key, self.size, self.timed, self.listed = stamp, key, size, timed, listed
        self.tolerance, self.stamp_in, self.body, self.url, self.ids = tolerance, stamp_in, body, url, ids

    def sign(self, text=TEXT, at=NOW, body=None, stamp=None):
        body = self.body if body is None else body
        stamp = self.stamp(at) if stamp is None else stamp
        return self.headers([self.encode(self.raw(text, stamp, body))], stamp)


def hexed(raw):
    return raw.hex()


def single(header, prefix="", time_header=None):
    def headers(signatures, stamp):
        out = [[header, prefix + signatures[0]]]
        if time_header:
            out.append([time_header, stamp])
        return out

    return headers


def pairs(header, label, time_label, separator=",", extra=""):
    def headers(signatures, stamp):
        parts = [f"{time_label}={stamp}"] + ([extra] if extra else []) + [f"{label}={s}" for s in signatures]
        return [[header, separator.join(parts)]]

    return headers


def standard(prefix):
    def headers(signatures, stamp):
        return [[prefix + "Id", ID], [prefix + "Timestamp", stamp], [prefix + "Signature", " ".join("v1," + s for s in signatures)]]

    return headers


def before(template):
    """The HMAC-SHA256 of a text that ends with the body."""
    return lambda text, stamp, body: mac(text.encode(), template.format(t=stamp, id=ID).encode() + body)


def own(signatures, stamp):
    return [["Webhook-Id", ID], ["Webhook-Timestamp", stamp], ["Webhook-Hmac-Sha256", signatures[0]]]


def hook0(signatures, stamp):
    covered = "h=x-event-id x-event-type"
    return [["X-Event-Id", ID], ["X-Event-Type", "user.created"]] + pairs("X-Hook0-Signature", "v1", "t", extra=covered)(signatures, stamp)


def twilio(text, stamp, body, url=TWILIO_URL):
    items = sorted(set(urllib.parse.parse_qsl(body.decode("latin-1"), keep_blank_values=True, encoding="latin-1")))
    signed = url.encode() + b"".join((name + value).encode("latin-1") for name, value in items)
    return mac(text.encode(), signed, "sha1")


SCHEMES = [
    Scheme("timestamp-body", "Webhook-Hmac-Sha256", before("{t}."), hexed, own),
    Scheme("standard-webhooks", "Webhook-Signature", before("{id}.{t}."), b64, standard("Webhook-"), key=whsec, listed=True, ids=True),
    Scheme("svix", "Svix-Signature", before("{id}.{t}."), b64, standard("Svix-"), key=whsec, listed=True, ids=True),
    Scheme("stripe", "Stripe-Signature", before("{t}."), hexed, pairs("Stripe-Signature", "v1", "t"), listed=True, stamp_in="pairs"),
    Scheme("github", "X-Hub-Signature-256", before(""), hexed, single("X-Hub-Signature-256", "sha256="), timed=False),
    Scheme("meta", "X-Hub-Signature-256", before(""), hexed, single("X-Hub-Signature-256", "sha256="), timed=False),
    Scheme("slack", "X-Slack-Signature", before("v0:{t}:"), hexed, single("X-Slack-Signature", "v0=", "X-Slack-Request-Timestamp")),
    Scheme("shopify", "X-Shopify-Hmac-Sha256", before(""), b64, single("X-Shopify-Hmac-Sha256"), timed=False),
    Scheme("paddle", "Paddle-Signature", before("{t}:"), hexed, pairs("Paddle-Signature", "h1", "ts", ";"), listed=True, stamp_in="pairs"),
    Scheme("zendesk", "X-Zendesk-Webhook-Signature", before("{t}"), b64, single("X-Zendesk-Webhook-Signature", "", "X-Zendesk-Webhook-Signature-Timestamp"), stamp=iso),
    Scheme("linear", "Linear-Signature", before(""), hexed, single("Linear-Signature"), tolerance=60, stamp_in="body", body=b'{"action":"create","type":"Issue","webhookTimestamp":1700000000000}'),
    Scheme("square", "X-Square-Hmacsha256-Signature", before(SQUARE_URL), b64, single("X-Square-Hmacsha256-Signature"), timed=False, url=SQUARE_URL),
    Scheme("twilio", "X-Twilio-Signature", twilio, b64, single("X-Twilio-Signature"), timed=False, size=20, url=TWILIO_URL, body=b"MessageSid=SM1&Body=Hello%21&From=%2B14158675309"),
    Scheme("discord", "X-Signature-Ed25519", lambda text, stamp, body: ed25519(text.encode(), stamp.encode() + body), hexed, single("X-Signature-Ed25519", "", "X-Signature-Timestamp"), key=public_key, size=64),
    Scheme("hook0", "X-Hook0-Signature", before("{t}.x-event-id x-event-type.{id}.user.created."), hexed, hook0, listed=True, stamp_in="pairs", ids=True),
    Scheme("hook0-body", "X-Hook0-Signature", before("{t}."), hexed, pairs("X-Hook0-Signature", "v0", "t"), listed=True, stamp_in="pairs"),
    Scheme("convoy-simple", "X-Convoy-Signature", before(""), hexed, single("X-Convoy-Signature"), timed=False),
    Scheme("convoy-advanced", "X-Convoy-Signature", before("{t},"), hexed, pairs("X-Convoy-Signature", "v1", "t"), listed=True, stamp_in="pairs"),
]

vectors = []


def vector(s, name, reason=None, headers=None, body=None, now=NOW, keys=(TEXT,), at=NOW, tolerance=300, **more):
    body = s.body if body is None else body
    v = {"scheme": s.name, "name": name, "keys": [s.key(k) for k in keys], "now": now, "tolerance": tolerance}
    if s.url:
        v["url"] = s.url
    v["headers"] = s.sign(body=body) if headers is None else headers
    try:
        v["body"] = body.decode()
    except UnicodeDecodeError:
        v["body_base64"] = b64(body)
    v["verdict"] = "refuse" if reason else "accept"
    if reason:
        v["reason"] = reason
    else:
        if s.timed:
            v["timestamp"] = at
        if s.ids:
            v["id"] = ID
    v.update(more)
    vectors.append(v)


def edited(s, headers, change, name=None):
    """The headers with the value of one of them changed."""
    name = name or s.header
    return [[n, change(v) if n == name else v] for n, v in headers]


def replaced(s, old, new):
    return edited(s, s.sign(), lambda v: v.replace(old, new))


for s in SCHEMES:
    good = s.encode(s.raw(TEXT, s.stamp(NOW), s.body))
    vector(s, "as it is sent")

    if s.name not in ("linear", "twilio"):
        for name, body in {
            "empty body": b"",
            "body of one byte": b"\0",
            "body of every byte": bytes(range(256)),
            "body beyond ASCII": '{"name":"Zoë 🚀"}'.encode(),
            "body with line ends": b'{\r\n  "a": 1\r\n}\n',
            "body of a block": b"x" * 64,
            "body of 4096 bytes": b"{" + b"y" * 4094 + b"}",
        }.items():
            vector(s, name, body=body)

    for name, change in {
        "newline added to the body": lambda b: b + b"\n",
        "byte order mark added to the body": lambda b: b"\xef\xbb\xbf" + b,
        "body cut short": lambda b: b[:-1],
        "one bit of the body changed": lambda b: b[:10] + bytes([b[10] ^ 1]) + b[11:],
        "no body": lambda b: b"",
    }.items():
        vector(s, name, "mismatch", headers=s.sign(), body=change(s.body))

    vector(s, "another key signed", "mismatch", headers=s.sign(text=OTHER))
    vector(s, "the second of two keys signed", headers=s.sign(text=OTHER), keys=(TEXT, OTHER))
    raw = s.raw(TEXT, s.stamp(NOW), s.body)
    for name, changed in {
        "first bit of the signature changed": bytes([raw[0] ^ 0x80]) + raw[1:],
        "last bit of the signature changed": raw[:-1] + bytes([raw[-1] ^ 1]),
        "signature of zeros": bytes(len(raw)),
    }.items():
        vector(s, name, "mismatch", headers=replaced(s, good, s.encode(changed)))
    if s.name == "discord":
        vector(s, "signature with s beyond the order", "mismatch", headers=replaced(s, good, (raw[:32] + (int.from_bytes(raw[32:], "little") + L).to_bytes(32, "little")).hex()))

    for name, text in {
        "signature cut by a character": good[:-1],
        "signature longer by a byte": s.encode(raw + b"\0"),
        "signature shorter by a byte": s.encode(raw[:-1]),
        "signature of nothing": "",
        "signature with a space inside": good[:8] + " " + good[8:],
        "signature with a character of neither encoding": "*" + good[1:],
        "signature beyond ASCII": "é" + good[2:],
    }.items():
        vector(s, name, "malformed", headers=replaced(s, good, text))
    if s.encode is hexed:
        vector(s, "signature in capitals", "malformed", headers=replaced(s, good, good.upper()))
        vector(s, "signature in base64", "malformed", headers=replaced(s, good, b64(raw)))
    else:
        vector(s, "signature in hex", "malformed", headers=replaced(s, good, raw.hex()))
        vector(s, "signature without padding", "malformed", headers=replaced(s, good, good.rstrip("=")))
        # The last character but the padding has bits that stand for nothing.
        alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        bare = good.rstrip("=")
        loose = bare[:-1] + alphabet[alphabet.index(bare[-1]) ^ 1] + good[len(bare):]
        vector(s, "signature with spare bits set", "malformed", headers=replaced(s, good, loose))
        url_safe = base64.urlsafe_b64encode(raw).decode()
        if url_safe != good:
            vector(s, "signature in URL-safe base64", "malformed", headers=replaced(s, good, url_safe))

    vector(s, "no signature", "missing", headers=[h for h in s.sign() if h[0] != s.header])
    vector(s, "signature header twice", "repeated", headers=s.sign() + [[s.header, dict(map(tuple, s.sign()))[s.header]]])
    vector(s, "signature header empty", "malformed", headers=edited(s, s.sign(), lambda v: ""))
    vector(s, "2100 commas", "malformed", headers=edited(s, s.sign(), lambda v: "," * 2100))
    vector(s, "names in lower case", headers=[[n.lower(), v] for n, v in s.sign()])

    if s.timed:
        for offset in (-s.tolerance, s.tolerance):
            vector(s, f"clock {offset:+d} s", now=NOW + offset)
            over = offset + (1 if offset > 0 else -1)
            vector(s, f"clock {over:+d} s", "window", now=NOW + over)
        vector(s, "narrower tolerance, at its edge", now=NOW + 10, tolerance=10)
        vector(s, "narrower tolerance, beyond", "window", now=NOW + 11, tolerance=10)
        vector(s, "clock at 1970", "window", now=0)
        vector(s, "clock before 1970", "window", now=-(2**62))
        vector(s, "clock at the end of all time", "window", now=2**62)
    else:
        vector(s, "years later: nothing in the signature ages", now=NOW + 10**9)

    if s.timed and s.stamp_in != "body":
        time_header = s.header if s.stamp_in == "pairs" else next(n for n, _ in s.sign() if n.endswith("imestamp"))
        forms = [" 1700000000", "1700000000 ", "+1700000000", "-1700000000", "01700000000", "1700000000.0", "1.7e9", "0x6553f100", "1_700_000_000", "1700000000000", "9223372036854775808", "１７００００００００", "NaN", "Infinity", "0", "1700000000\n"]
        forms += ["2023-11-14T22:13:20Z"] if s.stamp is str else ["1700000000", "2023-11-14T22:13:20", "2023-11-14 22:13:20Z", "2023-11-14T22:13:20,5Z", "2023-11-14T2:13:20Z", "2023-13-14T22:13:20Z", "2023-11-14T22:13:20z"]
        for form in forms:
            vector(s, f"time written as {form!r}", "malformed", headers=s.sign(stamp=form))
        vector(s, "another time than was signed", "mismatch", headers=edited(s, s.sign(), lambda v: v.replace(s.stamp(NOW), s.stamp(NOW + 1)), time_header))
        if time_header != s.header:
            vector(s, "no time", "missing", headers=[h for h in s.sign() if h[0] != time_header])
            vector(s, "time twice", "repeated", headers=s.sign() + [[time_header, s.stamp(NOW)]])
        if s.stamp is str and s.name not in ("discord", "standard-webhooks", "svix", "hook0"):
            # "T.99" with the body "rest" must not pass for "T" with the body "99.rest".
            between = {"slack": ":", "paddle": ":", "convoy-advanced": ","}.get(s.name, ".")
            shifted = s.headers([s.encode(s.raw(TEXT, s.stamp(NOW), b"99" + between.encode() + b"rest"))], s.stamp(NOW) + between + "99")
            # In Convoy's header the comma already separates the pairs.
            reason = "mismatch" if s.name == "convoy-advanced" else "malformed"
            vector(s, "text split elsewhere", reason, headers=shifted, body=b"rest")

    if s.listed:
        other = s.encode(s.raw(OTHER, s.stamp(NOW), s.body))
        junk = s.encode(bytes(s.size))
        lists = {
            "two signatures, the first right": ([good, other], None),
            "two signatures, the second right": ([other, good], None),
            "two signatures, none right": ([other, junk], "mismatch"),
            "sixteen signatures, the last right": ([junk] * 15 + [good], None),
            "seventeen signatures": ([junk] * 16 + [good], "malformed"),
            "an unreadable signature beside": (["unreadable", good], None),
        }
        for name, (signatures, reason) in lists.items():
            vector(s, name, reason, headers=s.headers(signatures, s.stamp(NOW)))
    if s.stamp_in == "pairs":
        separator = ";" if s.name == "paddle" else ","
        label = {"stripe": "v1", "paddle": "h1", "hook0": "v1", "hook0-body": "v0", "convoy-advanced": "v1"}[s.name]
        vector(s, "another label beside", headers=edited(s, s.sign(), lambda v: v + separator + "v9=ffff"))
        vector(s, "another label alone", "malformed", headers=edited(s, s.sign(), lambda v: v.replace(label + "=", "v9=")))
        vector(s, "two times", "malformed", headers=edited(s, s.sign(), lambda v: v + separator + v.split(separator)[0]))
        vector(s, "no time", "malformed", headers=edited(s, s.sign(), lambda v: v.split(separator, 1)[1]))
        vector(s, "space behind the separator", "malformed", headers=edited(s, s.sign(), lambda v: v.replace(separator + label, separator + " " + label)))
        vector(s, "33 parts", "malformed", headers=edited(s, s.sign(), lambda v: v + (separator + "x=y") * 31))

by_name = {s.name: s for s in SCHEMES}

s = by_name["linear"]
for name, text, reason in [
    ("a time within the window", '{"webhookTimestamp":1699999941000}', None),
    ("no time in the body", '{"type":"Issue"}', "window"),
    ("two times in the body", '{"webhookTimestamp":1700000000000,"webhookTimestamp":1700000000000}', "window"),
    ("a time in an inner object", '{"data":{"webhookTimestamp":1700000000000}}', "window"),
    ("a time in seconds", '{"webhookTimestamp":1700000000}', "window"),
    ("a time with an exponent", '{"webhookTimestamp":1.7e12}', "window"),
    ("a body that is no JSON", "webhookTimestamp=1700000000000", "window"),
]:
    vector(s, name, reason, headers=s.sign(body=text.encode()), body=text.encode(), at=1699999941 if reason is None else NOW)

s = by_name["twilio"]
for name, body in {
    "the form in another order": b"From=%2B14158675309&Body=Hello%21&MessageSid=SM1",
    "the form with other escapes": b"MessageSid=%53M1&Body=Hello!&From=%2b14158675309",
    "a parameter twice": b"MessageSid=SM1&MessageSid=SM1&Body=Hello%21&From=%2B14158675309",
}.items():
    vector(s, name, headers=s.sign(), body=body)
for name, body in {
    "a parameter more": s.body + b"&To=1",
    "a parameter less": b"MessageSid=SM1&Body=Hello%21",
    "a broken escape": s.body + b"%2",
}.items():
    vector(s, name, "mismatch", headers=s.sign(), body=body)
for url, name in ((TWILIO_URL.replace(".com", ".com:443"), "signed with the port"), (TWILIO_URL, "signed without the port")):
    vector(s, name, headers=single(s.header)([b64(twilio(TEXT, "", s.body, url))], ""))
document = b'{"property": "value", "boolean": true}'
target = TWILIO_URL + "&bodySHA256=" + hashlib.sha256(document).hexdigest()
hashed = single(s.header)([b64(mac(TEXT.encode(), target.encode(), "sha1"))], "")
vector(s, "a document and its hash", headers=hashed, body=document, request_url=target)
vector(s, "a document and another one's hash", "mismatch", headers=hashed, body=document + b" ", request_url=target)
vector(s, "a document without its hash", "mismatch", headers=hashed, body=document)
vector(s, "another path", "mismatch", request_url=TWILIO_URL.replace("/sms", "/voice"))
vector(s, "another query", "mismatch", request_url=TWILIO_URL.replace("=7", "=8"))

print('{"format": 1, "vectors": [')
print(",\n".join(json.dumps(v) for v in vectors))
print("]}")
