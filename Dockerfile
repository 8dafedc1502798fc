# Mailroom runs from its TypeScript sources: nothing is built, so an image is Node, the production dependencies and the sources.
FROM node:26-slim AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
RUN npm ci --omit=dev --workspaces=false --no-audit --no-fund

FROM node:26-slim
ENV NODE_ENV=production \
    MALLOC_ARENA_MAX=2 \
    MAILROOM_HOST=0.0.0.0 \
    MAILROOM_PORT=3000 \
    MAILROOM_DATA_DIR=/data
WORKDIR /app
COPY --from=dependencies /app/node_modules ./node_modules
COPY package.json LICENSE main.ts compile-cache.js ./
COPY machines ./machines
COPY engine ./engine
COPY api ./api
# The embedded store and a generated secret; with MONGODB_URI and MAILROOM_SECRET only messages on their way to a mail server.
RUN mkdir -p /data node_modules/.cache && chown node:node /data node_modules/.cache
VOLUME /data
USER node
# What Node has compiled is in the image.
RUN node --import ./compile-cache.js main.ts help
EXPOSE 3000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["node", "-e", "const { MAILROOM_ADMIN_PORT: own, MAILROOM_PORT: port } = process.env; fetch(`http://127.0.0.1:${Number(own) || port}/readyz`).then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))"]
CMD ["node", "--max-semi-space-size=4", "--max-old-space-size=1900", "--import", "./compile-cache.js", "main.ts"]
