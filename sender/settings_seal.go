package sender

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// sealedMark begins a header's value that is sealed. Values that are given cannot: they
// have no control characters but tabs.
const sealedMark = "\x01"

// sealOverhead is what a seal adds to a value, besides the id of the key: the format,
// the length of the id, the nonce and the tag.
const sealOverhead = 2 + 12 + 16

// isSealed tells a value as it is stored from one as it is given.
func isSealed(value string) bool { return strings.HasPrefix(value, sealedMark) }

// headerOf is what a sealed value is bound to, so that it cannot be moved to another
// subscription, or sent under another name. An id has no separator in it; a name may.
func headerOf(subscription, name string) string {
	return "surehook header|" + subscription + "|" + http.CanonicalHeaderKey(name)
}

// sealHeaders seals, in place, the values that are not sealed with the current key: a value
// that is handed back may have been read before a Rewrap. One that cannot be opened stays.
func (k *Keys) sealHeaders(subscription string, headers map[string]string) {
	for name, value := range headers {
		headers[name], _, _ = k.renewHeader(subscription, name, value)
	}
}

func (k *Keys) sealHeader(subscription, name, value string) string {
	return sealedMark + base64.RawStdEncoding.EncodeToString(k.sealFor(headerOf(subscription, name), []byte(value)))
}

// openHeader returns a value as it was given. A value that is not sealed was stored by a
// release that did not seal values, or by something else than Subscribe.
func (k *Keys) openHeader(subscription, name, value string) (string, error) {
	if !isSealed(value) {
		return value, nil
	}
	sealed, err := sealedHeader(value)
	if err != nil {
		return "", err
	}
	plain, err := k.openFor(headerOf(subscription, name), sealed)
	return string(plain), err
}

// Headers returns a subscription's own headers as they are sent, or nil if it has none.
// Its errors match ErrSealed.
func (k *Keys) Headers(subscription string, own map[string]string) (http.Header, error) {
	var header http.Header
	for name, value := range own {
		if refusedHeader(name) {
			continue
		}
		plain, err := k.openHeader(subscription, name, value)
		if err != nil {
			return nil, fmt.Errorf("%w (the header %q of subscription %q)", err, name, subscription)
		}
		if header == nil {
			header = make(http.Header, 8) // the library's are added
		}
		header[http.CanonicalHeaderKey(name)] = []string{plain}
	}
	return header, nil
}

// renewHeader returns a value sealed with the current key, and whether it was not.
func (k *Keys) renewHeader(subscription, name, value string) (renewed string, changed bool, err error) {
	if sealed, err := sealedHeader(value); err == nil {
		if name, err := keyOf(sealed); err == nil && name == k.current {
			return value, false, nil
		}
	}
	plain, err := k.openHeader(subscription, name, value)
	if err != nil {
		return value, false, err
	}
	return k.sealHeader(subscription, name, plain), true, nil
}

// sealedHeader returns the bytes of a sealed value.
func sealedHeader(value string) ([]byte, error) {
	text, ok := strings.CutPrefix(value, sealedMark)
	sealed, err := base64.RawStdEncoding.DecodeString(text)
	if !ok || err != nil {
		return nil, fmt.Errorf("%w: a header's value is not in a format that this version knows", ErrSealed)
	}
	return sealed, nil
}

// valueBytes is how many bytes a value has as it is sent.
func valueBytes(value string) int {
	sealed, err := sealedHeader(value)
	if err != nil {
		return len(value)
	}
	key, _ := keyOf(sealed)
	return max(0, len(sealed)-sealOverhead-len(key))
}

// checkSealed refuses sealed values that are not of this subscription and header. Values
// that are stored already stay, also if no key opens them.
func (k *Keys) checkSealed(given map[string]string, s Subscription) error {
	for name, value := range given {
		if !isSealed(value) || !isToken(name) || s.Settings.Headers[http.CanonicalHeaderKey(name)] == value {
			continue
		}
		if _, err := k.openHeader(s.ID, name, value); err != nil {
			return refuseField("headers", "settings: ", "the header %q has a value that was sealed for another subscription or header: give it as it is to be sent", name)
		}
	}
	return nil
}
