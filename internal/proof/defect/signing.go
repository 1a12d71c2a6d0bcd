package defect

var ofSigning = []Defect{
	{
		Name: "a signature is compared by its first byte alone",
		File: "signing/timestamp_body.go", Tests: []string{"./signing"},
		Old: "subtle.ConstantTimeCompare(mac[:], r.mac[:]) == 1", New: "subtle.ConstantTimeCompare(mac[:1], r.mac[:1]) == 1",
	},
	{
		Name: "the timestamp is not part of what is signed",
		File: "signing/mac.go", Tests: []string{"./signing"},
		Old: "return append(append(dst, timestamp...), '.')", New: "return append(dst, '.')",
	},
	{
		Name: "timestamps from the past are accepted for ever",
		File: "signing/timestamp.go", Tests: []string{"./signing"},
		Old: "t >= unix-seconds && t <= unix+seconds && tolerance >= 0", New: "t >= unix-seconds && tolerance >= 0",
	},
	{
		Name: "timestamps from the future are accepted",
		File: "signing/timestamp.go", Tests: []string{"./signing"},
		Old: "t >= unix-seconds && t <= unix+seconds && tolerance >= 0", New: "t <= unix+seconds && tolerance >= 0",
	},
	{
		Name: "a timestamp with a leading zero is accepted",
		File: "signing/timestamp.go", Tests: []string{"./signing"},
		Old: ` || s[0] == '0'`, New: "",
	},
	{
		Name: "of a repeated header the first one counts",
		File: "signing/header.go", Tests: []string{"./signing"},
		Old: "func (v headerValue) once(name string) error {\n\tif v.count == 1 {", New: "func (v headerValue) once(name string) error {\n\tif v.count >= 1 {",
	},
	{
		Name: "a secret goes on verifying after its end",
		File: "signing/keyring.go", Tests: []string{"./signing"},
		Old: "(end.IsZero() || !at.After(end))", New: "(end.IsZero() || k != nil)",
	},
	{
		Name: "the previous secret signs",
		File: "signing/keyring.go", Tests: []string{"./signing"},
		Old: "return b.NotBefore.Compare(a.NotBefore)", New: "return a.NotBefore.Compare(b.NotBefore)",
	},
	{
		Name: "a verifier looks by default for the header that has one signature alone",
		File: "signing/verifier.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestRotationWhileEventsFlow$",
		Old: "suited(DefaultSchemes(), keys)", New: "[]Scheme{TimestampBody{}}",
	},
	{
		Name: "a verifier of secrets in hex looks first at a list, which never has their signatures",
		File: "signing/verifier.go", Tests: []string{"./signing"},
		Old: "slices.Reverse(c.Schemes)", New: "slices.Clone(c.Schemes)",
	},
	{
		Name: "a list of signatures leaves out the key that does not sign yet",
		File: "signing/standard_webhooks.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestRotationWhileEventsFlow$",
		Old: "keys.listed(at)", New: "keys.signing(at)",
	},
	{
		Name: "a signed header may have the byte that ends it",
		File: "signing/header.go", Tests: []string{"./signing"},
		Old: "if !visible(rune(c)) && c != ' ' || byte(c) == separator {", New: "if !visible(rune(c)) && c != ' ' {",
	},
	{
		Name: "what stands behind the body is not signed",
		File: "signing/mac.go", Tests: []string{"./signing"},
		Old: "if len(s.tail) > 0 {", New: "if len(s.tail) > 1<<20 {",
	},
	{
		Name: "a notification of anybody's topic is taken",
		File: "signing/sns/sns.go", Tests: []string{"./signing/sns"},
		Old: `!slices.Contains(s.topics, msg.fields["TopicArn"])`, New: `len(s.topics) == 0`,
	},
	{
		Name: "a certificate may come from another region's host",
		File: "signing/sns/certificates.go", Tests: []string{"./signing/sns"},
		Old: `host := "sns." + parts[3] + ".amazonaws.com"`, New: `host := "sns.us-east-1.amazonaws.com"`,
	},
	{
		Name: "an HTTP Message Signature chooses its algorithm's key by no name",
		File: "signing/httpsig/input.go", Tests: []string{"./signing/httpsig"},
		Old: "KeyID: st.in.keyID}", New: `KeyID: ""}`,
	},
	{
		Name: "an HTTP Message Signature leaves out a component that must be covered",
		File: "signing/httpsig/component.go", Tests: []string{"./signing/httpsig"},
		Old: "if !has(l.components, c.id) {", New: "if !has(required, c.id) {",
	},
	{
		Name: "a certificate for another name signs for PayPal",
		File: "signing/paypal/certificate.go", Tests: []string{"./signing/paypal"},
		Old: "DNSName: s.subject(), Roots", New: "Roots",
	},
	{
		Name: "X's question has a body signed",
		File: "receiver/handshake.go", Tests: []string{"./receiver"}, Run: "Handshake",
		Old: "json.Valid([]byte(token))", New: "json.Valid(nil)",
	},
	{
		Name: "Asana's secret is taken although nobody expects one",
		File: "receiver/handshake.go", Tests: []string{"./receiver"}, Run: "HookSecret",
		Old: "if refused != nil {", New: "if refused != nil && is {",
	},
}

var ofRotation = []Defect{
	{
		Name: "a secret that is to sign later signs at once",
		File: "sender/secrets.go", Tests: []string{"./internal/proof/scenario"}, Run: "^TestRotationWhileEventsFlow$",
		Old: "fresh.NotBefore = from", New: "_ = from",
	},
	{
		Name: "a secret that waits signs when another one is added",
		File: "sender/rotation.go", Tests: []string{"./sender"}, Run: "^TestPropertyASecretAlwaysSigns$",
		Old: "if s.NotBefore.After(fresh.NotBefore) {\n\t\t\ts.NotBefore = fresh.NotBefore", New: "if s.NotBefore.After(now) {\n\t\t\ts.NotBefore = time.Time{}",
	},
	{
		Name: "from when a secret signs is forgotten, on SQLite",
		File: "sender/sqlite/secrets.go", Tests: []string{"./sender/sqlite"}, Run: store,
		Old: "micros(sec.NotBefore)", New: "0*micros(sec.NotBefore)",
	},
}
