// Package post makes one POST: it prepares a signed request, sends it once, and says what
// came of it in the words of package sender. It has the transports, the operator's
// proxies, and the guard that looks at every address that is dialled.
//
// It knows neither deliveries nor stores nor the keys with which something is sealed: its
// caller opens what it hands over.
package post
