package post

// Class says how a request failed. The empty class is success. The classes are those of
// package sender, by the same names and texts.
type Class string

// The classes of answers.
const (
	ClassNone     Class = ""         // answered with 2xx in time
	ClassDNS      Class = "dns"      // the host's name was not resolved
	ClassConnect  Class = "connect"  // no connection
	ClassTLS      Class = "tls"      // the TLS handshake or the certificate
	ClassTimeout  Class = "timeout"  // not answered whole within the attempt's deadline
	ClassReset    Class = "reset"    // the connection broke before the answer was whole
	ClassStatus   Class = "status"   // answered with a status other than 2xx and 3xx
	ClassRedirect Class = "redirect" // answered with 3xx, which is never followed
	ClassBlocked  Class = "blocked"  // the address is not one that may be called
	ClassProtocol Class = "protocol" // the answer is not HTTP
)
