package jose

import "net/http"

// SetTransport has keys come from a test instead of the sender.
func SetTransport(k Keys, t http.RoundTripper) {
	switch k := k.(type) {
	case *jwks:
		k.client.Transport = t
	case *plaidKeys:
		k.client.Transport = t
	}
}

// Canonical is the text of a query string hash.
var Canonical = canonical
