// Package post makes the same POSTs as deliveries, with the same headers and the same
// signatures, as fast as net/http can. All other senders are compared with it.
package post
