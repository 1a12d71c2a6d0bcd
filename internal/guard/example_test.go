package guard_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/surehook/surehook/internal/guard"
)

func ExamplePolicy_CheckURL() {
	var policy guard.Policy
	for _, raw := range []string{
		"HTTPS://Hooks.Example.com:443/orders",
		"http://hooks.example.com/",
		"https://2130706433/",
		"https://[::ffff:169.254.169.254]/latest/meta-data/",
	} {
		u, err := policy.CheckURL(raw)
		if err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(u)
	}
	// Output:
	// https://hooks.example.com:443/orders
	// guard: the scheme is http: use https
	// guard: the host "2130706433" ends in a number: write an IPv4 address as four decimal numbers without leading zeros, or give a name
	// guard: the address ::ffff:169.254.169.254 may not be called: give one that is globally routable
}

func ExamplePolicy_Control() {
	policy := guard.Policy{Deny: []netip.Prefix{netip.MustParsePrefix("8.8.4.0/24")}}
	dialer := net.Dialer{ControlContext: policy.Control}
	for _, address := range []string{"127.0.0.1:443", "8.8.4.4:443"} {
		_, err := dialer.DialContext(context.Background(), "tcp", address)
		fmt.Println(errors.Is(err, guard.ErrBlocked))
	}
	// Output:
	// true
	// true
}
