# The service alone: no torch, no compiler, a user without rights.
FROM python:3.11-slim
WORKDIR /app
COPY pyproject.toml constraints.txt README.md LICENSE NOTICE ./
COPY src src
RUN pip install --no-cache-dir -c constraints.txt '.[serve]' \
    && useradd --system --no-create-home sightline
USER sightline
ENV SIGHTLINE_HOST=0.0.0.0 SIGHTLINE_PORT=8000
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/readyz', timeout=4)"]
ENTRYPOINT ["sightline", "serve"]
