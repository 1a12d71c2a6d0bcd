package signing

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// maxDiagnosed bounds the work of Diagnose: a larger body is not tried.
const maxDiagnosed = 256 << 10

// Diagnose looks for the probable mistake behind a message that [Verifier.Verify]
// refuses, and describes it in sentences for a log. It tries the known changes that
// senders, gateways and frameworks make to bodies, secrets and clocks, and reports those
// that would make the signature right. If a well-formed signature is right under none of
// them, it says so, and which keys to compare with the sender's. It decides nothing: the
// message stays refused. nil means that it has found nothing, or that nothing is wrong.
//
// No sentence holds a byte of a secret, of the body or of a signature. They name headers,
// times, and keys by their IDs and their secrets' fingerprints. Never show one to the
// client that sent the request.
//
// It costs up to some eighty MACs over the body, so its caller must limit how often a
// stranger can ask for it. It looks at bodies of up to 256 KiB.
func (v *Verifier) Diagnose(m Message) []string {
	_, err := v.Verify(m)
	var outside *TimestampError
	var header *HeaderError
	switch {
	case err == nil:
		return nil
	case len(v.schemes) == 0:
		return []string{"the verifier is a zero value, without a scheme and without a keyring, and so it accepts nothing: make it with NewVerifier"}
	case errors.As(err, &outside):
		return []string{whySkewed(outside.Skew)}
	}
	d := diagnosis{v: v, m: m, now: v.now()}
	small := len(m.Body) <= maxDiagnosed
	switch {
	case errors.As(err, &header):
		if small && v.keys != nil {
			d.trySchemes()
		}
		if d.found == nil { // there may be no body yet
			d.found = whyHeader(header, m.Header)
		}
	case v.keys == nil:
		if errors.Is(err, ErrSignatureMismatch) {
			d.found = []string{"there is no keyring, since the scheme has keys of its own, and so no known mistake was tried: see whether something in front of the receiver changes bodies"}
		}
	case small:
		d.tryAll(errors.Is(err, ErrSignatureMismatch))
	}
	return d.found
}

// tryAll looks for the mistake behind a signature that is well-formed. A secret that was
// copied in part has another scheme's signature right, too, and is the likelier cause.
func (d *diagnosis) tryAll(mismatch bool) {
	d.tryKeys()
	if d.tryPrefix(); d.found == nil {
		d.trySecrets()
	}
	d.tryBodies()
	if d.found == nil && !d.tryRotated() {
		d.trySchemes()
	}
	if d.found == nil && mismatch && len(d.m.Body) == 0 {
		d.found = []string{"the body is empty: unless the sender posts none, something has read it before it was verified: verify in front of whatever parses bodies"}
	}
	if tried := d.v.Tried(); d.found == nil && mismatch && tried != nil {
		d.found = []string{fmt.Sprintf("no known mistake explains the signature: compare the fingerprints of the keys that were tried, %s, with the sender's: "+
			"it may have rotated its secret, or the one here may be another endpoint's; if they are equal, something in front of the receiver changes bodies", tried)}
	}
}

type diagnosis struct {
	v     *Verifier
	m     Message
	now   time.Time
	found []string
}

// verifies judges as Verify does: the first scheme whose signature is there decides.
func (d *diagnosis) verifies(m Message, keys *Keyring) bool {
	v := Verifier{schemes: d.v.schemes, keys: keys, now: func() time.Time { return d.now }, tolerance: d.v.tolerance}
	_, err := v.verify(&m, new(Verified))
	return err == nil
}

// trySchemes tries the schemes of other senders, except those that sign a URL, which is
// not known here. GitHub and Meta sign alike: it names GitHub.
func (d *diagnosis) trySchemes() {
	for _, s := range [...]Scheme{
		TimestampBody{}, StandardWebhooks{}, Svix(), Stripe(), GitHub(), Slack(), Shopify(), Paddle(), Zendesk(),
		Linear(), Meta(), Discord(), Hook0(), Hook0Body(), ConvoySimple(), ConvoyAdvanced(),
	} {
		if _, err := s.Verify(d.m, d.v.keys, d.now, d.v.tolerance); err == nil {
			d.found = append(d.found, fmt.Sprintf("the signature is right under the scheme %s: this verifier accepts others, or found the header of another one first", s.Name()))
			return
		}
	}
}

// tryKeys finds a key that is not used any more, or that is beyond the newest ones.
func (d *diagnosis) tryKeys() {
	for _, k := range d.v.keys.keys {
		ring := &Keyring{keys: []Key{{ID: k.ID, Secret: k.Secret}}}
		if !d.verifies(d.m, ring) {
			continue
		}
		why := fmt.Sprintf("it is not among the %d newest", maxLiveKeys)
		if !k.NotAfter.IsZero() && d.now.After(k.NotAfter) {
			why = "it ended at " + k.NotAfter.UTC().Format(time.RFC3339)
		}
		d.found = append(d.found, fmt.Sprintf("the signature was made with the key %q, which does not count: %s", k.ID, why))
	}
}

// hmacKeys are those among the keys that count whose secret has more than one form.
func (d *diagnosis) hmacKeys() (keys []Key) {
	try := d.v.keys.verifying(d.now)
	for _, i := range try.index[:try.n] {
		if k := d.v.keys.keys[i]; k.Secret.m.text != nil {
			keys = append(keys, k)
		}
	}
	return keys
}

func (d *diagnosis) madeWith(key []byte) bool {
	return allowedKey(key) && d.verifies(d.m, &Keyring{keys: []Key{{Secret: newHMACSecret(string(key), key, false)}}})
}

// tryPrefix finds the mistake that is made most often, when a secret is copied.
func (d *diagnosis) tryPrefix() {
	for _, k := range d.hmacKeys() {
		text := k.Secret.m.reveal()
		bare, prefixed := strings.CutPrefix(text, prefixHMAC)
		switch {
		case prefixed && d.madeWith([]byte(bare)):
			d.found = append(d.found, fmt.Sprintf("the sender's key is the text of the key %q without its prefix %s: the prefix was added here, or cut off there: both sides must have the secret exactly as it was shown", k.ID, prefixHMAC))
		case !prefixed && d.madeWith([]byte(prefixHMAC+text)):
			d.found = append(d.found, fmt.Sprintf("the prefix %s of the key %q was cut off: give the secret exactly as the sender shows it", prefixHMAC, k.ID))
		}
	}
}

func (d *diagnosis) trySecrets() {
	for _, k := range d.hmacKeys() {
		for _, mistake := range secretMistakes(k.Secret.m.reveal()) {
			if d.madeWith(mistake.bytes) {
				d.found = append(d.found, fmt.Sprintf("the sender's key is %s of the key %q", mistake.what, k.ID))
			}
		}
	}
}

// tryRotated finds a sender of this module that has rotated its secret: TimestampBody has
// the newest key's signature alone, and StandardWebhooks the previous one's too.
func (d *diagnosis) tryRotated() bool {
	v, err := StandardWebhooks{}.Verify(d.m, d.v.keys, d.now, d.v.tolerance)
	if hex := (TimestampBody{}).names().signature; err != nil || find(d.m.Header, hex).count == 0 {
		return false
	}
	if _, err := (TimestampBody{}).Verify(d.m, d.v.keys, d.now, d.v.tolerance); err == nil {
		return false
	}
	d.found = append(d.found, fmt.Sprintf("the signature is right under the scheme %s with the key %q, and that of %s was made with another key: "+
		"the sender has probably rotated its secret: give the new one to this receiver", v.Scheme, v.KeyID, TimestampBody{}.Name()))
	return true
}

func (d *diagnosis) tryBodies() {
	for _, mistake := range bodyMistakes(d.m.Body) {
		m := d.m
		m.Body = mistake.bytes
		if d.verifies(m, d.v.keys) {
			d.found = append(d.found, "the body was changed after signing: "+mistake.what)
		}
	}
}

// whySkewed explains a skew. Time zones differ by multiples of a quarter of an hour, and
// a late request is just as likely to have been stored somewhere.
func whySkewed(skew time.Duration) string {
	size, side := skew, "behind"
	if size < 0 {
		size, side = -size, "ahead of"
	}
	say := fmt.Sprintf("the timestamp is %s %s the clock here", size, side)
	const quarter = 15 * time.Minute
	rest := size % quarter
	if size <= 14*time.Hour+quarter && size >= 2*quarter && (rest <= time.Minute || rest >= quarter-time.Minute) {
		return say + ": that is a time zone's difference: the sender takes its local time for UTC"
	}
	if skew < 0 {
		return say + ": one of the two clocks is off"
	}
	return say + ": one of the two clocks is off, the request was kept somewhere on its way, or it was captured and sent again"
}

// foreignHeaders are those of senders whose schemes a verifier may have been meant
// to have.
var foreignHeaders = [...]struct{ header, sender string }{
	{"Webhook-Signature", "Standard Webhooks"}, {"Webhook-Hmac-Sha256", "timestamp-body"},
	{"Svix-Signature", "Svix"}, {"Stripe-Signature", "Stripe"}, {"X-Hub-Signature-256", "GitHub or Meta"},
	{"X-Slack-Signature", "Slack"}, {"X-Shopify-Hmac-Sha256", "Shopify"}, {"Paddle-Signature", "Paddle"},
	{"X-Zendesk-Webhook-Signature", "Zendesk"}, {"Linear-Signature", "Linear"}, {"X-Square-Hmacsha256-Signature", "Square"},
	{"X-Twilio-Signature", "Twilio"}, {"X-Signature-Ed25519", "Discord"}, {"X-Hook0-Signature", "hook0"}, {"X-Convoy-Signature", "Convoy"},
}

func whyHeader(err *HeaderError, h http.Header) (found []string) {
	if errors.Is(err, ErrNotSigned) {
		for _, f := range foreignHeaders {
			if find(h, f.header).count > 0 {
				found = append(found, fmt.Sprintf("the request carries %s, as %s sends it: this verifier accepts other schemes", f.header, f.sender))
			}
		}
		return found
	}
	if !errors.Is(err, ErrMalformedHeader) {
		return nil
	}
	switch text := find(h, err.Header).text; {
	case strings.TrimSpace(text) != text:
		found = append(found, "there is white space around the value of "+err.Header)
	case len(text) == 13 && !strings.ContainsFunc(text, func(r rune) bool { return r < '0' || r > '9' }):
		found = append(found, err.Header+" has 13 digits: the sender counts milliseconds, and it must be seconds")
	case len(text) == 64 && strings.ToLower(text) != text:
		found = append(found, err.Header+" has upper-case letters: the sender writes hex in upper case, and it must be lower")
	case strings.Contains(text, "=") && !strings.HasSuffix(text, "="):
		found = append(found, err.Header+` has the form "name=value": it is another scheme's`)
	}
	return found
}
