// Node's servers, each with the same answers, on the ports that config.json names.
'use strict'
const fs = require('fs')
const http = require('http')
const https = require('https')
const http2 = require('http2')

const config = JSON.parse(fs.readFileSync('config.json'))
const tls = { cert: fs.readFileSync('server.pem'), key: fs.readFileSync('server.key') }

function handle (req, res) {
  const record = status => fs.appendFileSync('requests.log', `${req.headers['webhook-id']} ${status}\n`)
  const answer = (status, headers, body) => {
    record(status)
    res.writeHead(status, headers)
    res.end(body)
  }
  const json = { 'content-type': 'application/json' }
  if (req.url === '/early200') return answer(200, json, '{}')
  if (req.url === '/early413') return answer(413, json, '{}')
  let size = 0
  req.on('data', chunk => { size += chunk.length })
  req.on('end', () => {
    if (size !== Number(req.headers['content-length'])) return answer(400, json, '{}')
    switch (req.url) {
      case '/length': return answer(200, { 'content-length': 2, ...json }, '{}')
      case '/chunked': return answer(200, json, '{}')
      case '/none': return answer(204, {})
      case '/broken': record(0); return req.socket.destroy()
      case '/interim':
        res.writeProcessing()
        res.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' })
        return answer(200, json, '{}')
      case '/largeheader': return answer(200, { 'x-large': 'x'.repeat(70000), ...json }, '{}')
      case '/trailers':
        record(200)
        res.writeHead(200, { trailer: 'x-after', ...json })
        res.write('{}')
        res.addTrailers({ 'x-after': '1' })
        return res.end()
      case '/untilclosed':
        res.shouldKeepAlive = false
        res.useChunkedEncodingByDefault = false
        res.removeHeader('transfer-encoding')
        return answer(200, json, '{}')
    }
    answer(404, json, '{}')
  })
}

// patient has a server keep an unused connection for longer than it does by itself, and say so.
function patient (server) {
  server.keepAliveTimeout = 60000
  return server
}

patient(http.createServer(handle)).listen(config.http, '127.0.0.1')
patient(https.createServer(tls, handle)).listen(config.https, '127.0.0.1')
const short = http.createServer(handle)
short.keepAliveTimeout = config.keepAliveTimeout
short.listen(config.short, '127.0.0.1')
patient(http2.createSecureServer({ ...tls, allowHTTP1: true }, handle)).listen(config.both, '127.0.0.1')
http2.createSecureServer(tls, handle).listen(config.http2, '127.0.0.1')
http2.createServer(handle).listen(config.h2c, '127.0.0.1')
