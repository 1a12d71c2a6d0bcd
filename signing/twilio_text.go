package signing

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"slices"
	"strings"
)

// twilioText is the text that Twilio signs, behind the scheme and the host, and the
// room to make it.
type twilioText struct {
	signed []byte
	form   []byte // names and values, decoded
	pairs  []formPair
}

// formPair is where a parameter's name and value lie: from, to which, and to where.
type formPair struct{ from, middle, to int }

func (p formPair) name(form []byte) []byte  { return form[p.from:p.middle] }
func (p formPair) value(form []byte) []byte { return form[p.middle:p.to] }

func (t *Twilio) text() *twilioText {
	if text, _ := t.scratch.Get().(*twilioText); text != nil {
		return text
	}
	return new(twilioText)
}

func (t *Twilio) giveBack(text *twilioText) {
	if cap(text.form) <= maxKeptContent && cap(text.signed) <= maxKeptContent {
		t.scratch.Put(text)
	}
}

// fill makes the text for a message, or reports that no signature can be right.
func (t *Twilio) fill(text *twilioText, messageURL string, body []byte) bool {
	target := messageURL
	if messageURL == "" {
		target = t.target()
	} else if _, rest, absolute := strings.Cut(messageURL, "://"); absolute {
		if i := strings.IndexAny(rest, "/?"); i >= 0 {
			target = rest[i:]
		} else {
			target = ""
		}
	}
	path, query, _ := strings.Cut(target, "?")
	// Otherwise a form's parameters could be passed off as the end of a path.
	if path != t.path && !(path == "/" && t.path == "") {
		return false
	}
	text.signed = append(text.signed[:0], t.path...)
	if len(target) > len(path) {
		text.signed = append(append(text.signed, '?'), query...)
	}
	if strings.Contains(query, twilioBodyHash) {
		return hashedBody(query, body)
	}
	if !text.parse(body) {
		return false
	}
	slices.SortFunc(text.pairs, func(a, b formPair) int {
		return cmp.Or(bytes.Compare(a.name(text.form), b.name(text.form)), bytes.Compare(a.value(text.form), b.value(text.form)))
	})
	for i, p := range text.pairs {
		if i > 0 && bytes.Equal(p.name(text.form), text.pairs[i-1].name(text.form)) && bytes.Equal(p.value(text.form), text.pairs[i-1].value(text.form)) {
			continue
		}
		text.signed = append(text.signed, text.form[p.from:p.to]...)
	}
	return true
}

// hashedBody takes bodySHA256 at the query's end alone, where Twilio puts it: further
// in front it can be a part of what somebody has written in a message.
func hashedBody(query string, body []byte) bool {
	last := query[strings.LastIndexByte(query, '&')+1:]
	digits, found := strings.CutPrefix(last, twilioBodyHash)
	var stated [sha256.Size]byte
	return found && decodeLowerHex(&stated, digits) && stated == sha256.Sum256(body)
}

// parse takes a form apart (https://url.spec.whatwg.org/#urlencoded-parsing), but refuses a
// broken escape instead of keeping it as it is.
func (t *twilioText) parse(body []byte) bool {
	t.form, t.pairs = t.form[:0], t.pairs[:0]
	for len(body) > 0 {
		var pair []byte
		pair, body, _ = bytes.Cut(body, []byte{'&'})
		if len(pair) == 0 {
			continue
		}
		if len(t.pairs) == maxFormPairs {
			return false
		}
		name, value, _ := bytes.Cut(pair, []byte{'='})
		p := formPair{from: len(t.form)}
		if !t.unescape(name) {
			return false
		}
		p.middle = len(t.form)
		if !t.unescape(value) {
			return false
		}
		p.to = len(t.form)
		t.pairs = append(t.pairs, p)
	}
	return true
}

func (t *twilioText) unescape(s []byte) bool {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '+':
			t.form = append(t.form, ' ')
		case '%':
			if i+2 >= len(s) {
				return false
			}
			high, low := hexDigit(s[i+1]), hexDigit(s[i+2])
			if high|low >= notHex {
				return false
			}
			t.form = append(t.form, high<<4|low)
			i += 2
		default:
			t.form = append(t.form, s[i])
		}
	}
	return true
}

// hexDigit takes capitals too, as they are usual in forms.
func hexDigit(c byte) byte {
	if c >= 'A' && c <= 'F' {
		c += 'a' - 'A'
	}
	return lowerHex[c]
}

func (t *twilioText) mac(key *hmacKey, origin string) (mac digest) {
	state := key.begin(HMACSHA1)
	state.head = append(state.head, origin...)
	key.end(HMACSHA1, state, t.signed, &mac)
	return mac
}
