// An npm registry on the loopback interface, for rehearsals of a release: it has what was published to it, in memory,
// and nothing else. Packages that it lacks are answered with 404, also if npm's public registry has them.
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { buffer } from 'node:stream/consumers';

/** Returns the document that npm would send to publish a tarball. */
function documentOf({ tarball, manifest }) {
  const { name, version } = manifest;
  const data = readFileSync(tarball);
  const hash = (algorithm, encoding) => createHash(algorithm).update(data).digest(encoding);
  const dist = { integrity: `sha512-${hash('sha512', 'base64')}`, shasum: hash('sha1', 'hex') };
  return {
    name,
    versions: { [version]: { ...manifest, _id: `${name}@${version}`, dist } },
    'dist-tags': { latest: version },
    _attachments: { [`${name}-${version}.tgz`]: { data: data.toString('base64') } },
  };
}

/** Starts a registry on a free port. Resolves with its address and close(). */
export async function startRegistry() {
  /** What npm has published, by name: the document that a registry answers with. */
  const documents = new Map();
  /** The published tarballs, by their path. */
  const tarballs = new Map();
  const failing = new Set();
  let url = '';

  const publish = (document) => {
    const known = documents.get(document.name) ?? { ...document, versions: {}, 'dist-tags': {} };
    for (const [version, manifest] of Object.entries(document.versions)) {
      if (known.versions[version]) return 409; // as npm's registry: a version can be published once
      const path = `/-/tarballs/${manifest.name}-${version}.tgz`;
      const [attachment] = Object.values(document._attachments);
      tarballs.set(path, Buffer.from(attachment.data, 'base64'));
      known.versions[version] = { ...manifest, dist: { ...manifest.dist, tarball: url + path } };
    }
    Object.assign(known['dist-tags'], document['dist-tags']);
    delete known._attachments;
    documents.set(document.name, known);
    return 201;
  };

  const server = createServer((request, response) => {
    const answer = (status, body) => {
      response.statusCode = status;
      response.setHeader(
        'content-type',
        Buffer.isBuffer(body) ? 'application/octet-stream' : 'application/json',
      );
      response.end(Buffer.isBuffer(body) ? body : JSON.stringify(body));
    };
    const handle = async () => {
      const { pathname } = new URL(request.url, url);
      const path = decodeURIComponent(pathname);
      if (request.method === 'PUT') {
        const status = publish(JSON.parse((await buffer(request)).toString('utf8')));
        return answer(status, status === 201 ? { success: true } : { error: 'version exists already' });
      }
      if (tarballs.has(path)) return failing.has(path) ? answer(503, {}) : answer(200, tarballs.get(path));
      const document = documents.get(path.slice(1));
      return document ? answer(200, document) : answer(404, { error: `${path} is not in this registry` });
    };
    handle().catch((error) => answer(500, { error: String(error) }));
  });
  await new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  url = `http://127.0.0.1:${server.address().port}`;
  return {
    url,
    /** Publishes packed packages at once, without npm. */
    add: (packed) => {
      for (const entry of packed) publish(documentOf(entry));
    },
    /** Names of the packages in the order in which they were published. */
    published: () => [...documents.keys()],
    /** Makes downloads of these packages fail, and those of all others work, from now on. */
    failDownloads: (...names) => {
      failing.clear();
      for (const path of tarballs.keys())
        if (names.some((name) => path.startsWith(`/-/tarballs/${name}-`))) failing.add(path);
    },
    close: () => new Promise((resolve) => server.close(resolve).closeAllConnections()),
  };
}
