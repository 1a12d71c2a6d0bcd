package schemes_test

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/surehook/surehook/signing"
)

func seconds(t time.Time) string { return strconv.FormatInt(t.Unix(), 10) }

func standardHeaders(h http.Header, prefix string, at time.Time, signature string) {
	h.Set(prefix+"Id", eventID)
	h.Set(prefix+"Timestamp", seconds(at))
	h.Set(prefix+"Signature", signature)
}

// For all headers and bodies, signing and the library of Standard Webhooks accept the
// same messages, unless signing is stricter in one of the ways that stricter names.
func FuzzStandardWebhooks(f *testing.F) {
	whsec := "whsec_" + base64.StdEncoding.EncodeToString([]byte(text))
	library, err := standardwebhooks.NewWebhook(whsec)
	if err != nil {
		f.Fatal(err)
	}
	secret, err := signing.ParseSecret(whsec)
	if err != nil {
		f.Fatal(err)
	}
	keys, err := signing.NewKeyring(signing.Key{Secret: secret})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("evt_1", int8(0), "", "", []byte("{}"), uint16(0))
	f.Add("a.b", int8(1), "v1,AAAA ", " v1a,x", []byte("\xff"), uint16(3))
	f.Add("x", int8(-100), "v1,AAAA,", ",v2", []byte{}, uint16(9))
	f.Add("x", int8(5), "v2,", "", []byte("x"), uint16(70))
	f.Fuzz(func(t *testing.T, id string, offset int8, before, after string, body []byte, flip uint16) {
		if offset == 30 || offset == -30 {
			return // the edge of the window: the two look at the clock one after the other
		}
		at := time.Now().Add(time.Duration(offset) * 10 * time.Second)
		signature, err := library.Sign(id, at, body)
		if err != nil {
			t.Fatal(err)
		}
		value := []byte(before + signature + after)
		if flip > 0 {
			value[int(flip)%len(value)] ^= byte(flip >> 8)
		}
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {seconds(at)}, "Webhook-Signature": {string(value)}}

		theirs := library.Verify(body, h)
		_, ours := signing.StandardWebhooks{}.Verify(signing.Message{Header: h, Body: body}, keys, time.Now(), 5*time.Minute)
		switch {
		case ours == nil && theirs != nil:
			t.Fatalf("we accept what they refuse with %v: id %q, signature %q", theirs, id, value)
		case ours != nil && theirs == nil && !stricter(id, string(value)):
			t.Fatalf("we refuse with %v what they accept: id %q, signature %q", ours, id, value)
		}
	})
}

// stricter tells whether signing refuses on purpose a message that the library accepts:
// with an id of another form, more than 16 signatures, a second comma in one of them,
// or base64 with line ends or spare bits.
func stricter(id, value string) bool {
	if id == "" || len(id) > 128 || strings.Trim(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
		return true
	}
	entries := strings.Split(value, " ")
	if len(entries) > 16 {
		return true
	}
	strict := false
	for _, entry := range entries {
		version, encoded, _ := strings.Cut(entry, ",")
		if strings.Contains(encoded, ",") {
			return true
		}
		if _, err := base64.StdEncoding.Strict().DecodeString(encoded); version == "v1" && (err != nil || strings.ContainsAny(encoded, "\r\n")) {
			strict = true
		}
	}
	return strict
}
