package signing_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/surehook/surehook/signing"
)

// Lists of other forms than "label=value" are read by item, and each is signed as it is read.
func TestListsOfOtherForms(t *testing.T) {
	at := fmt.Sprint(now.UnixMilli())
	good := fmt.Sprintf("%x", macOf(secretA, at+"."+string(body)))
	plain := fmt.Sprintf("%x", macOf(secretA, string(body)))
	zero := strings.Repeat("0", 64)
	recurly := signing.Description{Name: "x", SignatureHeader: "X-Sig", List: signing.TimeThenSignatures, SignatureLabel: "s", TimestampLabel: "t", TimestampFormat: signing.UnixMillis, Signed: "{timestamp}.{body}", SignWith: signing.EveryKey}
	worldpay := signing.Description{Name: "x", SignatureHeader: "X-Sig", List: signing.KeyedSignatures, SignatureLabel: "SHA256", Signed: "{body}", SignWith: signing.EveryKey}
	persona := signing.Description{Name: "x", SignatureHeader: "X-Sig", List: signing.GroupedList, SignatureLabel: "v1", TimestampLabel: "t", TimestampFormat: signing.UnixMillis, Signed: "{timestamp}.{body}", SignWith: signing.EveryKey}
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	for _, c := range []struct {
		d     signing.Description
		value string
		want  error
	}{
		{recurly, at + "," + good, nil},
		{recurly, at + "," + zero + "," + good, nil},
		{recurly, at + ",de1ec7ab1e," + good, nil},
		{recurly, good + "," + at, signing.ErrMalformedHeader},
		{recurly, at, signing.ErrMalformedHeader},
		{recurly, at + ",", signing.ErrMalformedHeader},
		{recurly, "," + good, signing.ErrMalformedHeader},
		{recurly, at + "," + zero, signing.ErrSignatureMismatch},
		{recurly, at + strings.Repeat(","+zero, 17), signing.ErrMalformedHeader},
		{recurly, fmt.Sprint(now.Add(-time.Hour).UnixMilli()) + "," + good, signing.ErrTimestampOutsideWindow},
		{worldpay, "1/SHA256/" + plain, nil},
		{worldpay, "1/SHA256/" + zero + ",27/SHA256/" + plain, nil},
		{worldpay, "2/SHA256/" + plain + ",1/SHA256/" + zero, nil},
		{worldpay, "1/SHA512/" + plain, signing.ErrMalformedHeader},
		{worldpay, "SHA256/" + plain, signing.ErrMalformedHeader},
		{worldpay, plain, signing.ErrMalformedHeader},
		{worldpay, "1/SHA256/" + plain + "/x", signing.ErrMalformedHeader},
		{worldpay, "1/SHA256/" + zero, signing.ErrSignatureMismatch},
		{persona, "t=" + at + ",v1=" + good, nil},
		{persona, "t=" + at + ",v1=" + zero + " t=" + at + ",v1=" + good, nil},
		{persona, "t=" + at + ",v1=" + good + " t=" + at + ",v1=" + zero, nil},
		{persona, "t=" + at + ",v1=" + good + " t=1" + at[1:] + ",v1=" + good, nil}, // the same time
		{persona, "t=" + at + ",v1=" + good + " t=2" + at[1:] + ",v1=" + good, signing.ErrMalformedHeader},
		{persona, "t=" + at + ",t=" + at + "0,v1=" + good, signing.ErrMalformedHeader},
		{persona, "t=" + at + ",v1=" + zero + " t=" + at + ",v1=" + zero, signing.ErrSignatureMismatch},
	} {
		s, err := signing.NewDescribed(c.d)
		require.NoError(t, err)
		_, err = s.Verify(signing.Message{Header: http.Header{"X-Sig": {c.value}}, Body: body}, keys, now, tolerance)
		if c.want == nil {
			require.NoError(t, err, c.value)
		} else {
			require.ErrorIs(t, err, c.want, c.value)
		}
	}
	for says, d := range map[string]signing.Description{
		"it must be a time and, behind commas, signatures of 64 lowercase hex digits": recurly, "it has no signature of the form ID/SHA256/64 lowercase hex digits": worldpay,
	} {
		s, err := signing.NewDescribed(d)
		require.NoError(t, err)
		require.ErrorContains(t, s.Precheck(http.Header{"X-Sig": {at + ",x"}}, now, tolerance), says)
	}
	for _, d := range []signing.Description{recurly, worldpay, persona} {
		s, err := signing.NewDescribed(d)
		require.NoError(t, err)
		both := ring(t, signing.Key{Secret: textSecret(t, secretA)}, signing.Key{Secret: textSecret(t, secretB)})
		h := http.Header{}
		require.NoError(t, s.Sign(h, "", now, body, both))
		for _, text := range []string{secretA, secretB} {
			_, err := s.Verify(signing.Message{Header: h, Body: body}, ring(t, signing.Key{Secret: textSecret(t, text)}), now, tolerance)
			require.NoError(t, err, h.Get("X-Sig"))
		}
	}
	for want, d := range map[string]signing.Description{
		"for a LabelledList alone": {Name: "x", SignatureHeader: "X", List: signing.GroupedList, SignatureLabel: "v1", SpacedList: true, Signed: "{body}"},
		"needs a TimestampLabel":   {Name: "x", SignatureHeader: "X", List: signing.TimeThenSignatures, SignatureLabel: "v1", Signed: "{body}"},
		"have no time":             {Name: "x", SignatureHeader: "X", List: signing.KeyedSignatures, SignatureLabel: "v1", TimestampLabel: "t", Signed: "{timestamp}{body}"},
		"and List need":            {Name: "x", SignatureHeader: "X", List: signing.GroupedList, Signed: "{body}"},
		"must be constants":        {Name: "x", SignatureHeader: "X", List: 9, SignatureLabel: "v1", Signed: "{body}"},
	} {
		_, err := signing.NewDescribed(d)
		require.ErrorContains(t, err, want)
	}
}

// Mercado Pago signs an id in lower case, and writes seconds or milliseconds.
func TestLowerCaseAndEitherTime(t *testing.T) {
	s, err := signing.NewDescribed(signing.Description{
		Name: "x", SignatureHeader: "X-Signature", SignatureLabel: "v1", TimestampLabel: "ts", TimestampFormat: signing.UnixSecondsOrMillis,
		Signed: "id:{lower:data.id};ts:{timestamp};", IDField: "data.id", TypeField: "type",
	})
	require.NoError(t, err)
	v, err := signing.NewVerifier(ring(t, signing.Key{Secret: textSecret(t, secretA)}), &signing.VerifierConfig{Schemes: []signing.Scheme{s}, UnsignedBody: true, Now: at(now)})
	require.NoError(t, err)
	_, err = signing.NewVerifier(ring(t, signing.Key{Secret: textSecret(t, secretA)}), &signing.VerifierConfig{Schemes: []signing.Scheme{s}})
	require.ErrorContains(t, err, "UnsignedBody")
	for ts, want := range map[string]error{
		seconds(now): nil, fmt.Sprint(now.UnixMilli()): nil, fmt.Sprint(now.UnixMicro()): signing.ErrMalformedHeader,
		seconds(now.Add(-time.Hour)): signing.ErrTimestampOutsideWindow, "0": signing.ErrMalformedHeader,
	} {
		header := fmt.Sprintf("ts=%s,v1=%x", ts, macOf(secretA, "id:ord01jq;ts:"+ts+";"))
		m := signing.Message{Header: http.Header{"X-Signature": {header}}, Body: []byte(`{"data":{"id":"ORD01JQ"},"type":"order"}`)}
		_, facts, err := v.VerifyFacts(m)
		if want != nil {
			require.ErrorIs(t, err, want, ts)
			continue
		}
		require.NoError(t, err, ts)
		require.Empty(t, facts.ID)
		require.Equal(t, signing.Unsigned("ORD01JQ"), facts.UnsignedID)
		require.Equal(t, signing.Unsigned("order"), facts.UnsignedType)
		other := m
		other.Body = []byte(`{"data":{"id":"ord01jq"},"type":"payment"}`)
		_, same, err := v.VerifyFacts(other)
		require.NoError(t, err)
		require.Equal(t, facts.DedupKey(), same.DedupKey(), "what is not signed makes no other event")
		other.Body = []byte(`{"data":{"id":"ORD02JQ"},"type":"order"}`)
		_, err = v.Verify(other)
		require.ErrorIs(t, err, signing.ErrSignatureMismatch)
		later := seconds(now.Add(time.Second))
		other = signing.Message{Header: http.Header{"X-Signature": {fmt.Sprintf("ts=%s,v1=%x", later, macOf(secretA, "id:ord01jq;ts:"+later+";"))}}, Body: m.Body}
		_, another, err := v.VerifyFacts(other)
		require.NoError(t, err)
		require.NotEqual(t, facts.DedupKey(), another.DedupKey(), "the time is signed, and makes another event")
	}
}

// A time in a header of its own tells events apart, too, where the body is not signed.
func TestTheSignedTimeMakesAnEvent(t *testing.T) {
	s := described(t, signing.Description{TimestampHeader: "X-Time", Signed: "{timestamp}.{field:account}"})
	keys := ring(t, signing.Key{Secret: textSecret(t, secretA)})
	v, err := signing.NewVerifier(keys, &signing.VerifierConfig{Schemes: []signing.Scheme{s}, UnsignedBody: true, Now: at(now)})
	require.NoError(t, err)
	key := func(at time.Time) string {
		m := signing.Message{Header: http.Header{}, Body: []byte(`{"account":"acc_1"}`)}
		require.NoError(t, s.Sign(m.Header, "", at, m.Body, keys))
		_, facts, err := v.VerifyFacts(m)
		require.NoError(t, err)
		return facts.DedupKey()
	}
	require.Equal(t, key(now), key(now))
	require.NotEqual(t, key(now), key(now.Add(time.Second)), "the account has changed twice")
}
