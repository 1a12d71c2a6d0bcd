package post

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/surehook/surehook/internal/guard"
	"github.com/surehook/surehook/sender"
	"github.com/surehook/surehook/sender/internal/http1"
	"github.com/surehook/surehook/sender/internal/http2"
)

// own are the errors of this module. They come before all others, whose causes they may have.
var own = []struct {
	err   error
	class sender.Class
	text  string
}{
	{http1.ErrClosedIdle, sender.ClassReset, "the server closed a connection that was kept from an earlier attempt"},
	{http2.ErrRefused, sender.ClassReset, "the server refused the request, and says that it has not processed it"},
	{http1.ErrHeader, sender.ClassProtocol, fmt.Sprintf("the answer's headers are longer than %d KiB", maxHeader>>10)},
	{http2.ErrLongRequest, sender.ClassProtocol, "the server takes no headers as long as those of the request"},
	{http1.ErrNotTaken, sender.ClassTimeout, "the server answered, and did not take the whole event within the attempt's time"},
	{http2.ErrTooMuch, sender.ClassProtocol, "the server sends far more than answers"},
	{errSpoke, sender.ClassProtocol, "the server spoke before it was asked, as neither TLS nor HTTP allows"},
	{errNeither, sender.ClassTLS, "the server offers neither HTTP/1.1 nor HTTP/2"},
	{guard.ErrBlocked, sender.ClassBlocked, "the address may not be called"},
}

// classify names how an attempt that got no whole answer failed. The text is for
// the subscription's owner and holds nothing of the URL, which may carry a
// token, nor of addresses, which would tell a subscriber about our network. answered: the
// answer's status and headers were read.
func classify(ctx context.Context, err error, answered bool) (sender.Class, string) {
	var (
		dns        *net.DNSError
		op         *net.OpError
		record     tls.RecordHeaderError
		verify     *tls.CertificateVerificationError
		hostname   x509.HostnameError
		unknown    x509.UnknownAuthorityError
		invalid    x509.CertificateInvalidError
		proxy      *proxyError
		timeout    net.Error
		isTimeout  = errors.As(err, &timeout) && timeout.Timeout()
		isDeadline = errors.Is(err, context.DeadlineExceeded) || errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(ctx.Err(), context.DeadlineExceeded)
		// How the server has ended TLS.
		alert, alerted = http1.Alert(err)
	)
	for _, o := range own {
		if errors.Is(err, o.err) {
			return o.class, o.text
		}
	}
	switch {
	case errors.As(err, &proxy) && (isDeadline || isTimeout):
		return sender.ClassTimeout, proxy.text
	case errors.As(err, &proxy):
		return sender.ClassConnect, proxy.text
	case system.exhausted(err):
		return sender.ClassConnect, noResources
	case errors.As(err, &dns) && !isDeadline:
		return sender.ClassDNS, "the host's name could not be resolved"
	case errors.As(err, &dns):
		return sender.ClassTimeout, "the host's name could not be resolved within the attempt's time"
	case errors.As(err, &op) && op.Op == "dial" && op.Timeout():
		return sender.ClassTimeout, "no connection could be made within the attempt's time"
	case (isDeadline || isTimeout) && errors.Is(err, http1.ErrHandshake):
		return sender.ClassTimeout, "the TLS handshake was not over within the attempt's time"
	case isDeadline || isTimeout:
		return sender.ClassTimeout, "no whole answer within the attempt's time"
	case errors.As(err, &hostname):
		return sender.ClassTLS, "the server's certificate is for another host"
	case errors.As(err, &unknown) && selfSigned(unknown.Cert):
		return sender.ClassTLS, "the server's certificate is self-signed: it must be from a known authority"
	case errors.As(err, &unknown):
		return sender.ClassTLS, "the server's certificate is not from a known authority, or an intermediate certificate is missing"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired && invalid.Cert.NotBefore.After(time.Now()):
		return sender.ClassTLS, "the server's certificate is not valid yet"
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return sender.ClassTLS, "the server's certificate has expired"
	case errors.As(err, &verify), errors.As(err, &invalid):
		return sender.ClassTLS, "the server's certificate is not valid"
	case errors.As(err, &record):
		return sender.ClassTLS, "the server does not speak TLS at this port"
	case alerted:
		return sender.ClassTLS, fmt.Sprintf("the server ended TLS by the alert %q", alert)
	case strings.Contains(err.Error(), "tls: no renegotiation"): // crypto/tls has no name for it
		return sender.ClassTLS, "the server asked for a second TLS handshake (renegotiation), which is not made: it must ask for a client certificate in the first one"
	case strings.Contains(err.Error(), "tls: "):
		return sender.ClassTLS, "the TLS handshake failed"
	case errors.As(err, &op) && op.Op == "dial",
		system.cutOff(err): // this reaches a kept-alive connection too, when our own network goes
		return sender.ClassConnect, system.text(err)
	case http1.ClosedByPeer(err) && errors.Is(err, http1.ErrHandshake):
		return sender.ClassReset, "the connection was closed before the TLS handshake was over"
	case http1.ClosedByPeer(err), errors.Is(err, http2.ErrReset), errors.Is(err, net.ErrClosed), endedForNetHTTP(err):
		return sender.ClassReset, "the connection was closed before the answer was whole"
	}
	return sender.ClassProtocol, notHTTP(err, answered)
}

// selfSigned reports whether a certificate names itself as its authority.
func selfSigned(c *x509.Certificate) bool {
	return c != nil && bytes.Equal(c.RawIssuer, c.RawSubject)
}

// endedForNetHTTP reports whether an error of net/http's transport, which can be the
// unguarded one, says that the server has ended the connection or the stream. Such errors have
// neither exported names nor exported types.
func endedForNetHTTP(err error) bool {
	return slices.ContainsFunc([]string{"server closed idle connection", "GOAWAY", "received from peer"}, func(says string) bool {
		return strings.Contains(err.Error(), says)
	})
}

// These texts say to the subscription's owner that this machine lacked something.
const (
	noResources   = "the sender had no resources left for a connection"
	noAuthorities = "the sender has no certificates of authorities, by which it could verify the server's"
)

// withoutAuthorities reports whether a server could not be verified because this machine has
// no authorities' certificates, such as in a container's image that holds a program alone.
func withoutAuthorities(err error) bool {
	if _, unread := errors.AsType[x509.SystemRootsError](err); unread {
		return true
	}
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); !unknown {
		return false
	}
	all, err := x509.SystemCertPool()
	return err != nil || all.Equal(x509.NewCertPool())
}

func notHTTP(err error, answered bool) string {
	var over *overHTTP2
	switch {
	case answered:
		return "the answer's body is malformed"
	case errors.As(err, &over):
		return "the answer is malformed"
	}
	return "the answer is not valid HTTP/1.1"
}
