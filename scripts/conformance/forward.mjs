// Stands between the suite, which cannot be told to show a token, and a server: passes everything on as it is, with the
// token, and takes down what was asked and answered.
//
//   node forward.mjs TARGET RECORD [TOKEN]        TARGET: http://127.0.0.1:PORT; the first line says where it listens
import { appendFileSync } from 'node:fs';
import http from 'node:http';

const [target, record, token] = process.argv.slice(2);
const { hostname, port } = new URL(target);

const server = http.createServer((request, response) => {
  const headers = { ...request.headers };
  if (token) headers.authorization = `Bearer ${token}`;
  const asked = [];
  const answered = [];
  const options = { hostname, port, path: request.url, method: request.method, headers, setHost: false };
  const onward = http.request(options, (answer) => {
    response.writeHead(answer.statusCode, answer.rawHeaders);
    response.flushHeaders();
    answer.on('data', (chunk) => {
      answered.push(chunk);
      response.write(chunk);
    });
    answer.on('end', () => response.end());
    answer.on('error', () => response.destroy());
    response.on('close', () => {
      const text = (chunks) => Buffer.concat(chunks).toString();
      const line = { method: request.method, asked: text(asked), status: answer.statusCode, answered: text(answered) };
      appendFileSync(record, `${JSON.stringify(line)}\n`);
    });
  });
  onward.on('error', () => response.destroy());
  // Whoever closes a stream gives up: the server has to see it.
  response.on('close', () => onward.destroy());
  request.on('data', (chunk) => {
    asked.push(chunk);
    onward.write(chunk);
  });
  request.on('end', () => onward.end());
});
server.listen(0, '127.0.0.1', () => console.log(`http://127.0.0.1:${server.address().port}`));
