// A server that does not say for how long it keeps an idle connection, and another one by
// which that is changed while it runs.
'use strict'
const fs = require('fs')
const http = require('http')
const https = require('https')

const config = JSON.parse(fs.readFileSync('config.json'))
const record = fs.createWriteStream('requests.log', { flags: 'a' })

const server = https.createServer({ cert: fs.readFileSync('server.pem'), key: fs.readFileSync('server.key') }, (req, res) => {
  req.resume()
  req.on('end', () => {
    record.write(`${req.headers['webhook-id']} 200 ${req.headers['webhook-attempt']}\n`)
    res.setHeader('Connection', 'keep-alive') // with a header of ours Node leaves out Keep-Alive
    res.end('{}')
  })
})
server.keepAliveTimeout = config.keepAliveTimeout
server.listen(config.https, '127.0.0.1')

http.createServer((req, res) => {
  server.keepAliveTimeout = Number(req.url.slice(1))
  res.end()
}).listen(config.control, '127.0.0.1')
