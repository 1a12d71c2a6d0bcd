package sender

import (
	"fmt"
	"net/url"
)

// Proxies are HTTP proxies, by the names that a subscription's Settings.Proxy can have. A
// map[string]*url.URL can be given in its place. Printing or logging it shows no
// credentials.
type Proxies map[string]*url.URL

// Format writes the names and the addresses, whatever the verb.
func (p Proxies) Format(f fmt.State, _ rune) {
	shown := make(map[string]string, len(p))
	for name, u := range p {
		if shown[name] = ""; u != nil {
			shown[name] = u.Scheme + "://" + u.Host
		}
	}
	_, _ = fmt.Fprint(f, shown)
}
